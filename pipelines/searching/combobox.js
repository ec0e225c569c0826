// Completes a query while it is typed: a combobox with a list (WAI-ARIA APG, list autocomplete).
// Without it the form works as it is. Texts of pages become text nodes, never HTML.

// Completes what is typed into an input. `complete(text, signal)` returns a promise of
// { words: [text], pages: [{ title, url }] }.
export function completeWhileTyping(input, complete) {
  const form = input.form;
  const list = document.createElement("ul");
  let options = []; // what choosing each does
  let active = -1;
  let typed = input.value;
  let timer = 0;
  let request = null;

  list.id = "completions";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  })) input.setAttribute(name, value);

  function close() {
    clearTimeout(timer);
    request?.abort();
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function move(step) {
    // One place more than options: there, the text is as it was typed.
    active = ((active + 1 + step + options.length + 1) % (options.length + 1)) - 1;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === active)));
    if (active < 0) {
      input.removeAttribute("aria-activedescendant");
    } else {
      list.children[active].scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", list.children[active].id);
    }
    input.value = active < 0 ? typed : options[active].text;
  }

  function choose(at) {
    const { url, text } = options[at];
    close();
    if (url) {
      location.assign(url);
    } else {
      input.value = text;
      form.requestSubmit();
    }
  }

  function show(answer) {
    options = answer.words.map((text) => ({ text }));
    // Pages whose address is no link of the web are searched for by their title.
    options.push(...answer.pages.map(({ title, url }) => ({
      text: title, note: url, url: /^(https?|ftp):/i.test(url) ? url : "",
    })));
    active = -1;
    list.replaceChildren(...options.map(({ text, note }, at) => {
      const item = document.createElement("li");
      item.id = `completion-${at}`;
      item.dir = "auto";
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.append(text);
      if (note) item.append(Object.assign(document.createElement("small"), { textContent: note }));
      return item;
    }));
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    input.removeAttribute("aria-activedescendant");
  }

  async function ask() {
    request?.abort();
    request = new AbortController();
    const { signal } = request;
    try {
      const answer = await complete(typed, signal);
      if (!signal.aborted) show(answer);
    } catch {
      if (!signal.aborted) close();
    }
  }

  input.addEventListener("input", () => {
    typed = input.value;
    clearTimeout(timer);
    if (typed.trim()) timer = setTimeout(ask, 120);
    else close();
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      input.value = typed;
      close();
    } else if (!list.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      choose(active);
    }
  });
  input.addEventListener("blur", close);
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault(); // the input keeps the focus
    const item = event.target.closest("li");
    if (item && event.button === 0) choose([...list.children].indexOf(item));
  });
}

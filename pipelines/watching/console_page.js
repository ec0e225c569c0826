// Replaces the live part of the console every two seconds, as long as the page is seen and not paused.
// The server makes the HTML, in which texts of strangers are escaped; no script in it would run.

const BETWEEN_MS = 2000, LONGEST_MS = 30000;
const live = document.getElementById("live");
const state = document.getElementById("state");
const looked = document.getElementById("looked");
const pause = document.getElementById("pause");
let wait = BETWEEN_MS, timer = 0, paused = false, answered = new Date();

function showState(name) {
  if (state.textContent === name) return; // a screen reader would say it again
  state.textContent = name;
  state.className = `state ${name}`;
}

function show(text) {
  const part = new DOMParser().parseFromString(text, "text/html").body;
  showState(part.firstElementChild?.dataset.state ?? "unknown");
  const focused = live.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  live.replaceChildren(...part.childNodes);
  if (focused !== null) live.querySelector(`a[href=${CSS.escape(focused)}]`)?.focus({ preventScroll: true });
}

async function look() {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  try {
    const answer = await fetch(live.dataset.address, { signal: AbortSignal.timeout(10000) });
    if (answer.status === 403) throw new Error("the token is not valid any more");
    const text = await answer.text();
    if (!paused) show(text);
    answered = new Date();
    looked.textContent = `looked at ${answered.toLocaleTimeString()}`;
    wait = BETWEEN_MS;
  } catch (error) {
    showState("unknown");
    looked.textContent = `no answer since ${answered.toLocaleTimeString()}: ${error.message}`;
    wait = Math.min(2 * wait, LONGEST_MS);
  }
  timer = setTimeout(look, wait);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Go on" : "Pause";
  look();
});
document.addEventListener("visibilitychange", look);
timer = setTimeout(look, BETWEEN_MS);

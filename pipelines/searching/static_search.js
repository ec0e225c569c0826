// Searches an index in files, without a server.
//
// The list of a word has the score that the server gives each page for this word alone. Scores of words
// add up. Words that no page has are corrected as the server does.
import { completeWhileTyping } from "./combobox.js";
import { about, countPages, fileOf, inForm, readAbout, readPage, readWords } from "./static_files.js";
import { allPages, byDate, countFacets, selector } from "./static_facets.js";
import { parse, replaceWords } from "./static_query.js";
import { rank } from "./static_ranking.js";
import { element, facetsOf, item, notice, orders, steps } from "./static_results.js";
import { correct } from "./static_spelling.js";

const PER_PAGE = 10;
const ORDERS = ["relevance", "date"];
const MOST_CORRECTED = 8; // words of a query

// { pages: [[page, score]], missing, parts, ignored } of a query as it is.
async function find(query) {
  const { clauses, filters, ignored } = parse(query);
  const has = await selector(filters);
  if (clauses.some((clause) => !clause.excluded)) return { ...(await rank(clauses, has)), ignored };
  const isSelected = filters.some((filter) => !filter.excluded);
  const pages = isSelected ? (await allPages()).filter(has).map((page) => [page, 0]) : [];
  return { pages, missing: [], parts: [], ignored };
}

// [[clause, correction]] of words that no page has; those in quotation marks stay as they are.
async function corrections(missing) {
  const words = missing.filter(([clause]) => clause.end !== undefined).slice(0, MOST_CORRECTED);
  const pairs = await Promise.all(words.map(async ([clause]) => [clause, await correct(clause.words[0])]));
  return pairs.filter(([, correction]) => correction);
}

// Finds pages; a sure correction is searched at once, another one if nothing else is found.
async function search(query) {
  const typed = await find(query);
  const changes = await corrections(typed.missing);
  const changed = (some) => replaceWords(query, some.map(([clause, { text }]) => [clause, text]));
  let searched = changes.filter(([, { isSure }]) => isSure);
  let result = searched.length ? await find(changed(searched)) : typed;
  if (!result.pages.length && searched.length < changes.length) {
    searched = changes;
    result = await find(changed(searched));
  }
  if (!result.pages.length) [searched, result] = [[], typed];
  const names = [...new Set(typed.missing.flatMap(([, words]) => words))];
  const missing = names.length ? `no page has: ${names.join(", ")}` : "";
  const notes = typed.ignored.length ? [{ text: `not searched here: ${typed.ignored.join(" ")}` }] : [];
  if (searched.length) {
    const quoted = searched.map(([clause]) => [clause, `"${query.slice(clause.begin, clause.end)}"`]);
    notes.push({ text: `${missing}; searched for:`, query: changed(searched) },
      { text: "to search for what was typed:", query: replaceWords(query, quoted) });
  } else if (changes.length) {
    notes.push({ text: `${missing}; did you mean:`, query: changed(changes) });
  } else if (missing) {
    notes.push({ text: missing });
  }
  return { ...result, notes };
}

// The number of the first result, the pages, notes and facets of a query, for the page and for tests.
export async function answer(query, start = 0, order = "relevance") {
  await readAbout();
  const result = await search(query);
  const pages = order === "date" ? await byDate(result.pages) : result.pages;
  const total = pages.length;
  const last = Math.max(0, Math.ceil(total / PER_PAGE) - 1) * PER_PAGE;
  const first = Math.min(Math.floor(start / PER_PAGE) * PER_PAGE, last);
  const texts = await Promise.all(pages.slice(first, first + PER_PAGE).map(([page]) => readPage(page)));
  return { ...result, pages, first, total, texts, facets: total ? await countFacets(pages) : [] };
}

async function show(main, query, start, order) {
  const { first, total, texts, parts, notes, facets } = await answer(query, start, order);
  const view = { query, order, first };
  const numbers = total > texts.length ? `${first + 1}–${first + texts.length} of ` : "";
  const count = total ? `${numbers}${total.toLocaleString("en")} ${total === 1 ? "page" : "pages"}` : "No page found.";
  const status = element("p", { class: "soft", role: "status" }, count);
  main.replaceChildren(...notes.map((note) => notice(view, note)), total ? element("div", { class: "columns" },
    element("div", { class: "bar" }, status, orders(view)),
    facetsOf(view, facets),
    element("ol", { class: "results", start: first + 1 }, ...texts.map((text) => item(text, parts))),
    steps(view, total, PER_PAGE)) : status);
}

async function complete(text) {
  await readAbout();
  const [, before, word] = text.match(/^(.*?)([^\s"-]*)$/s);
  const start = inForm(word);
  if (start.length < 2 || start.includes(":") || text.length > 100) return { words: [], pages: [] };
  const file = await readWords(fileOf(start));
  const words = Object.keys(file.forms).filter((form) => form.startsWith(start) && form !== start);
  words.sort((a, b) => countPages(file, b) - countPages(file, a) || a.length - b.length);
  return { words: words.slice(0, 8).map((form) => before + form), pages: [] };
}

// The order stays when another query is typed.
function keepOrder(form, order) {
  if (order !== ORDERS[0]) form.append(element("input", { type: "hidden", name: "order", value: order }));
}

async function run() {
  const input = document.getElementById("query");
  const fields = new URLSearchParams(location.search);
  const query = (fields.get("q") ?? "").trim();
  const order = ORDERS.includes(fields.get("order")) ? fields.get("order") : ORDERS[0];
  input.value = query;
  completeWhileTyping(input, complete);
  keepOrder(input.form, order);
  if (!query) {
    input.focus();
    return;
  }
  document.title = `${query} - search`;
  const main = document.querySelector("main");
  main.replaceChildren(element("p", { class: "soft", role: "status" }, "Searching …"));
  try {
    await show(main, query, Number.parseInt(fields.get("start") ?? "0", 10) || 0, order);
  } catch (error) {
    main.replaceChildren(element("p", { role: "alert" }, `The index cannot be read: ${error.message}`));
  }
}

if (document.getElementById("query")) run();

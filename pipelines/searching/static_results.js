// Shows results: texts of pages become text nodes, never HTML.
import { chosenValue, toggledQuery } from "./static_query.js";
import { WORD, fold, inForm } from "./static_files.js";

const SNIPPET_CHARS = 220;
const BEFORE = 60; // characters of a snippet before its first word

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The address of a query, an order and a first result.
export function address(query, order = "relevance", start = 0) {
  const fields = new URLSearchParams({ q: query });
  if (order !== "relevance") fields.set("order", order);
  if (start) fields.set("start", start);
  return `?${fields}`;
}

// The part of a text with most words of the query, as [text, is a mark] pairs.
function snippetOf(text, parts) {
  const matches = [...text.matchAll(WORD)].map((match) => {
    const word = fold(inForm(match[0]));
    return { begin: match.index, end: match.index + match[0].length,
      part: parts.findIndex(({ beginning }) => word.startsWith(beginning)) };
  }).filter(({ part }) => part >= 0);
  let [best, start] = [0, 0];
  matches.forEach((first, at) => {
    const seen = new Set();
    for (let next = at; next < matches.length && matches[next].end <= first.begin + SNIPPET_CHARS - BEFORE; next += 1) {
      seen.add(matches[next].part);
    }
    const worth = [...seen].reduce((sum, part) => sum + parts[part].rarity, 0);
    if (worth > best + 1e-9) [best, start] = [worth, first.begin];
  });
  let begin = text.length <= SNIPPET_CHARS ? 0 : Math.max(0, Math.min(start - BEFORE, text.length - SNIPPET_CHARS));
  if (begin && text.indexOf(" ", begin) >= 0 && text.indexOf(" ", begin) < start) begin = text.indexOf(" ", begin) + 1;
  let end = Math.min(text.length, begin + SNIPPET_CHARS);
  if (end < text.length && text.lastIndexOf(" ", end) > start) end = text.lastIndexOf(" ", end);
  const spans = [[begin ? "…" : "", false]];
  let at = begin;
  for (const match of matches.filter((one) => one.begin >= begin && one.end <= end)) {
    spans.push([text.slice(at, match.begin), false], [text.slice(match.begin, match.end), true]);
    at = match.end;
  }
  return [...spans, [text.slice(at, end), false], [end < text.length ? "…" : "", false]];
}

// A text without its first line if that is in the title, which is shown beside it.
function withoutTitle({ title, text }) {
  const at = text.indexOf("\n");
  const isTitle = at >= 0 && title.toLowerCase().includes(text.slice(0, at).trim().toLowerCase());
  return (isTitle && text.slice(at).trimStart()) || text;
}

export function item(text, parts) {
  const shown = text.title || text.url;
  const linked = /^(?:https?|ftp):\/\//i.test(text.url)
    ? element("a", { href: text.url, rel: "noreferrer noopener" }, shown) : shown;
  const line = element("p", { class: "soft where" }, element("span", {}, text.url));
  if (text.day) {
    line.append(element("span", {}, `${text.kind} `, element("time", { datetime: text.day }, text.day)));
  }
  const snippet = snippetOf(withoutTitle(text), parts).filter(([span]) => span).map(
    ([span, isMark]) => (isMark ? element("mark", {}, span) : span));
  return element("li", {}, element("h2", { dir: "auto" }, linked), line,
    element("p", { dir: "auto" }, ...snippet));
}

// Links to other pages of results.
export function steps(view, total, perPage) {
  const [here, last] = [Math.floor(view.first / perPage), Math.ceil(total / perPage) - 1];
  const nav = element("nav", { "aria-label": "Pages of results" });
  const link = (page, label, attributes = {}) => element("a",
    { href: address(view.query, view.order, page * perPage), ...attributes }, label);
  if (here) nav.append(link(here - 1, "Previous"));
  for (let page = 0; page <= last; page += 1) {
    if (page === 0 || page === last || Math.abs(page - here) <= 2) {
      nav.append(link(page, String(page + 1), { "aria-label": `Page ${page + 1}`,
        ...(page === here ? { "aria-current": "page" } : {}) }));
    } else if (Math.abs(page - here) === 3) {
      nav.append(element("span", {}, "…"));
    }
  }
  if (here < last) nav.append(link(here + 1, "Next"));
  return last > 0 ? nav : "";
}

export function orders(view) {
  const links = [["relevance", "Relevance"], ["date", "Date"]].map(([order, label]) => element("a",
    { href: address(view.query, order), ...(order === view.order ? { "aria-current": "true" } : {}) }, label));
  return element("nav", { "aria-label": "Order" }, element("span", { class: "soft" }, "Sort by"), ...links);
}

// Facets with a choice, or of which a value is chosen.
export function facetsOf(view, all) {
  const facets = all.filter(({ name, values }) => values.length > 1 || chosenValue(view.query, name));
  if (!facets.length) return "";
  const isChosen = facets.some(({ name }) => chosenValue(view.query, name));
  return element("details", { class: "facets", ...(isChosen ? { open: "" } : {}) },
    element("summary", {}, `Narrow by ${facets.map(({ name }) => name).join(", ")}`),
    ...facets.flatMap((facet) => [
      element("h2", {}, facet.name[0].toUpperCase() + facet.name.slice(1)),
      element("ul", {}, ...valuesOf(view, facet))]));
}

function valuesOf(view, { name, values }) {
  const chosen = chosenValue(view.query, name);
  const isThere = !chosen || values.some(({ query }) => query === chosen);
  const shown = isThere ? values : [{ label: chosen, pages: "", query: chosen }, ...values]; // as typed
  return shown.map(({ label, pages, query }) => {
    const link = element("a", { href: address(toggledQuery(view.query, name, query), view.order) }, label);
    if (query === chosen) {
      link.setAttribute("aria-current", "true");
      link.append(" ", element("span", { "aria-hidden": "true" }, "×"));
    }
    return element("li", {}, link, " ", element("span", { class: "soft" }, pages.toLocaleString("en")));
  });
}

// A line about the query, with another query that it offers.
export function notice(view, { text, query }) {
  const line = element("p", { class: "notice" }, text);
  if (query) line.append(" ", element("a", { href: address(query, view.order) }, query));
  return line;
}

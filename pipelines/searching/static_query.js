// The query language of an export: words, phrases, minus, and operators that select pages.
import { about, inForm, wordsOf } from "./static_files.js";

const MOST_CHARS = 1000; // of a query
const MOST_CLAUSES = 32;
const PART = /(-?)(?:([a-z]+):(?=[^\s/]))?(?:"([^"]*)"|([^\s"]+))/gi;
const OPERATORS = {
  site: "site", host: "site", domain: "site", type: "type", filetype: "type", ext: "type", mime: "type",
  lang: "lang", language: "lang", after: "after", since: "after", before: "before", until: "before",
};
const OF_TEXT = new Set(["intext", "text", "content", "body", "inbody"]);
const NOT_SEARCHED = new Set(["inurl", "url", "intitle", "title"]);
const DATE = /^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$/;
const VALUES = {
  site: (text) => text.replace(/^[a-z][a-z0-9+.-]*:\/\//, "").replace(/^\*\.|[./]+$/g, ""),
  type: (text) => about.types[text.replace(/^\./, "")] ?? text.replace(/^\./, ""),
  lang: (text) => text.split(/[-_]/)[0],
  after: seconds,
  before: seconds,
};

function seconds(text) {
  const match = DATE.exec(text);
  if (!match) return null;
  const [year, month, day] = match.slice(1).map((part) => Number(part ?? 1));
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() / 1000 : null;
}

// { clauses: [{ words, excluded, follow, begin, end }], filters: [{ name, value, excluded }], ignored: [text] }.
// A clause has `begin` and `end`, its place in the query, if it is a word that may be corrected.
export function parse(query) {
  const [clauses, filters, ignored] = [[], [], []];
  for (const match of query.slice(0, MOST_CHARS).matchAll(PART)) {
    const [whole, minus, name, phrase, word] = match;
    const operator = (name ?? "").toLowerCase();
    if (Object.hasOwn(OPERATORS, operator)) {
      const value = VALUES[OPERATORS[operator]]((phrase ?? word).toLowerCase());
      if (value === null) ignored.push(whole);
      else filters.push({ name: OPERATORS[operator], value, excluded: Boolean(minus) });
    } else if (NOT_SEARCHED.has(operator)) {
      ignored.push(whole);
    } else {
      const text = phrase ?? (OF_TEXT.has(operator) ? word : `${name ? `${name}:` : ""}${word}`);
      const words = wordsOf(text);
      const clause = { words, excluded: Boolean(minus), follow: words.length > 1 };
      if (phrase === undefined && !name && words.length === 1 && words[0] === inForm(text)) {
        clause.end = match.index + whole.length;
        clause.begin = clause.end - word.length;
      }
      if (words.length) clauses.push(clause);
    }
  }
  return { clauses: clauses.slice(0, MOST_CLAUSES), filters, ignored };
}

// A query with some of its words replaced: [[clause, other text]].
export function replaceWords(query, changes) {
  let text = query;
  for (const [{ begin, end }, other] of [...changes].sort((a, b) => b[0].begin - a[0].begin)) {
    text = text.slice(0, begin) + other + text.slice(end);
  }
  return text;
}

const OF_FACETS = { host: "site", type: "type", language: "lang", year: "after|before" };

function operatorsOf(query, facet) {
  const outside = query.replace(/"[^"]*"/g, (phrase) => "x".repeat(phrase.length)); // of phrases
  return [...outside.matchAll(new RegExp(`(?<!\\S)(?:${OF_FACETS[facet]}):[^\\s"]+`, "gi"))];
}

// The operators in a query that choose a value of a facet, or "".
export const chosenValue = (query, facet) => operatorsOf(query, facet).map(([text]) => text).join(" ");

// A query with another value of a facet; without any if it has that value.
export function toggledQuery(query, facet, value) {
  let rest = query;
  for (const match of operatorsOf(query, facet).reverse()) {
    rest = rest.slice(0, match.index).trimEnd() + rest.slice(match.index + match[0].length);
  }
  return `${rest.trim()} ${chosenValue(query, facet) === value ? "" : value}`.trim();
}

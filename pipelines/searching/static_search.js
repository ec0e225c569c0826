// Searches an index in files (static_export.py writes them), without a server.
//
// The postings of a word have the score that the server gives each page for this word alone. Scores of
// words add up; what the server adds for words that are near one another is computed from the texts of
// the best pages. Texts of pages become text nodes, never HTML.
import { completeWhileTyping } from "./combobox.js";

const PER_PAGE = 10;
const RERANKED = 30; // best pages whose texts are read
const WITH_PHRASE = 100; // of a query with a phrase: others are left out
const MOST_CHARS = 1000; // of a query
const MOST_WORDS = 32;
const SNIPPET_CHARS = 220;
const BEFORE = 60; // characters of a snippet before its first word
const FAR = 8; // words between the words of a query that are near
const FAR_PAIR = 6;
const PAIR_BOOST = 0.8;
const MOST_NEAR = 8;
const SPACELESS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const WORD = new RegExp(`${SPACELESS.source}|(?:(?!${SPACELESS.source})[\\p{L}\\p{M}\\p{N}])+`, "gu");
const SITE = /^(-?)(?:site|host|domain):(.+)/i;
const OPERATOR = /^-?(?:type|lang|after|before|inurl|intitle):/i;
const SHORTEST = 4; // letters of a word for which another one is suggested
const TWO_MISTAKES = 6; // letters of a word that may have two

const files = new Map(); // promises, by name
let about; // about.json: what the index has

async function read(name) {
  if (!files.has(name)) {
    files.set(name, fetch(name).then(async (answer) => {
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      return JSON.parse(await new Response(
        answer.body.pipeThrough(new DecompressionStream("gzip"))).text());
    }));
    files.get(name).catch(() => files.delete(name));
  }
  return files.get(name);
}

const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "");
const wordsOf = (text) => text.normalize("NFKC").toLowerCase().match(WORD) ?? [];

// The shard that has a word: shards have words in order, and about.shards has the first of each.
function shardOf(word) {
  let at = about.shards.length - 1;
  while (at > 0 && about.shards[at] > word) at -= 1;
  return read(`${about.data}/words-${at}.bin`);
}

// { pages: Map of scores by page, beginning, rarity }, or null if no page has the word.
async function lookUp(word) {
  const shard = await shardOf(word);
  let form = Object.hasOwn(shard.forms, word) ? word : "";
  if (!form && fold(word) !== word) return lookUp(fold(word));
  if (!form && word.length > 3) { // another form of the word: herons, heron
    const start = word.slice(0, Math.max(4, word.length - 3));
    const near = Object.keys(shard.forms).filter(
      (other) => other.startsWith(start) && Math.abs(other.length - word.length) <= 3);
    const shared = (other) => [...other].findIndex((letter, at) => letter !== word[at]);
    near.sort((a, b) => (shared(b) < 0 ? 99 : shared(b)) - (shared(a) < 0 ? 99 : shared(a)) || a.length - b.length);
    form = near[0] ?? "";
  }
  if (!form) return null;
  const [list, beginning, rarity] = shard.forms[form];
  const pages = new Map();
  const [gaps, scores] = shard.lists[list];
  let page = 0;
  gaps.forEach((gap, at) => {
    page += gap;
    pages.set(page, scores[at] / about.scale);
  });
  return { pages, beginning, rarity };
}

// The word of the same file that was probably meant, or "".
async function suggest(word) {
  if (word.length < SHORTEST || !/^\p{L}+$/u.test(word)) return "";
  const { forms, lists } = await shardOf(word);
  let [best, most] = ["", [word.length < TWO_MISTAKES ? 2 : 3, 0]];
  for (const form of Object.keys(forms)) {
    if (Math.abs(form.length - word.length) > 2) continue;
    const [distance, pages] = [mistakes(form, word), lists[forms[form][0]][0].length];
    if (distance < most[0] || (best && distance === most[0] && pages > most[1])) {
      [best, most] = [form, [distance, pages]];
    }
  }
  return best;
}

// How many letters are missing, too many, wrong, or have changed places.
function mistakes(one, other) {
  let [before, above] = [[], Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let row = 1; row <= one.length; row += 1) {
    const here = [row];
    for (let at = 1; at <= other.length; at += 1) {
      const same = one[row - 1] === other[at - 1];
      here[at] = Math.min(above[at] + 1, here[at - 1] + 1, above[at - 1] + (same ? 0 : 1));
      if (row > 1 && at > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1]) {
        here[at] = Math.min(here[at], before[at - 2] + 1);
      }
    }
    [before, above] = [above, here];
  }
  return above[other.length];
}

function parse(query) {
  const clauses = [];
  const ignored = [];
  const sites = [];
  for (const [, minus, phrase, word] of query.slice(0, MOST_CHARS).matchAll(/(-?)(?:"([^"]*)"|([^\s"]+))/g)) {
    if (phrase === undefined && OPERATOR.test(minus + word)) {
      ignored.push(minus + word);
      continue;
    }
    const site = phrase === undefined && (minus + word).match(SITE);
    if (site) {
      sites.push({ host: site[2].toLowerCase(), excluded: Boolean(site[1]) });
      continue;
    }
    const words = wordsOf(phrase ?? word);
    if (words.length) clauses.push({ words, excluded: Boolean(minus), follow: words.length > 1 });
  }
  return { clauses: clauses.slice(0, MOST_WORDS), ignored, sites };
}

// The numbers of the pages of a host and of those below it.
async function pagesBelow(name) {
  const hosts = await read(`${about.data}/hosts.bin`);
  return Object.keys(hosts).filter((host) => host === name || host.endsWith(`.${name}`))
    .flatMap((host) => hosts[host]);
}

// A function that says whether a page is of the wanted hosts; and all pages of these.
async function sitesOf(sites) {
  const lists = await Promise.all(sites.map(({ host }) => pagesBelow(host)));
  const wanted = new Set(lists.filter((_, at) => !sites[at].excluded).flat());
  const excluded = new Set(lists.filter((_, at) => sites[at].excluded).flat());
  const all = sites.every((site) => site.excluded);
  return { has: (page) => (all || wanted.has(page)) && !excluded.has(page), wanted };
}

// Pages with a clause: of several words, those that have all of them.
async function pagesOf(clause) {
  const parts = await Promise.all(clause.words.map(lookUp));
  const missing = clause.words.filter((_, at) => parts[at] === null);
  if (missing.length) return { pages: new Map(), parts: [], missing };
  const [first, ...others] = parts;
  const pages = new Map();
  for (const [page, score] of first.pages) {
    if (others.every((part) => part.pages.has(page))) {
      pages.set(page, others.reduce((sum, part) => sum + part.pages.get(page), score));
    }
  }
  return { pages, parts, missing };
}

async function search(query) {
  const { clauses, ignored, sites } = parse(query);
  const { has, wanted: pagesOfSites } = await sitesOf(sites);
  const common = new Set(about.common);
  const wanted = clauses.filter((clause) => !clause.excluded);
  const rare = wanted.filter((clause) => clause.follow || !common.has(clause.words[0]));
  const counted = rare.length ? rare : wanted;
  const results = await Promise.all(counted.map(pagesOf));
  const excluded = await Promise.all(clauses.filter((clause) => clause.excluded).map(pagesOf));
  const missing = await Promise.all([...new Set(results.flatMap((one) => one.missing))].map(
    async (word) => [word, await suggest(word)]));
  if (!counted.length) {
    return { pages: [...pagesOfSites].filter(has).map((page) => [page, 0]), ignored, missing, parts: [] };
  }
  const optional = counted.filter((clause) => !clause.follow).length;
  for (const least of [optional <= 2 ? optional : Math.ceil(optional * 0.6), Math.min(1, optional)]) {
    const scores = new Map();
    const numbers = new Map();
    results.forEach(({ pages }, at) => {
      for (const [page, score] of pages) {
        scores.set(page, (scores.get(page) ?? 0) + score);
        if (!counted[at].follow) numbers.set(page, (numbers.get(page) ?? 0) + 1);
      }
    });
    const required = results.filter((_, at) => counted[at].follow);
    const pages = [...scores].filter(([page]) => has(page) &&
      (numbers.get(page) ?? 0) >= least && required.every((one) => one.pages.has(page)) &&
      !excluded.some((one) => one.pages.has(page)));
    if (pages.length || least <= 1) {
      pages.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      const ordered = await rerank(pages, counted, results);
      return { pages: ordered, ignored, missing, parts: results.flatMap((one) => one.parts) };
    }
  }
}

// Reads the texts of the best pages, and orders these by what near words add to their scores.
async function rerank(pages, clauses, results) {
  const near = results.flatMap((one) => one.parts);
  const phrases = results.filter((_, at) => clauses[at].follow);
  if (near.length < 2) return pages;
  const number = phrases.length ? WITH_PHRASE : RERANKED;
  const best = await Promise.all(pages.slice(0, number).map(async ([page, score]) => {
    const text = await read(`${about.data}/page-${page}.bin`);
    const places = placesOf(text, near);
    const follow = ({ parts }) => worthOf(places, near, parts.map((part) => near.indexOf(part)), 0, text);
    return phrases.every(follow) ? [page, score + text.factor * nearness(places, near, text)] : null;
  }));
  const ordered = best.filter(Boolean).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return phrases.length ? ordered : [...ordered, ...pages.slice(RERANKED)];
}

// Where words begin so, in title and text, by the number of the word.
function placesOf(text, parts) {
  return [text.title, text.text].map((part) => {
    const places = parts.map(() => []);
    fold(part.normalize("NFKC").toLowerCase()).match(WORD)?.forEach((word, at) => {
      parts.forEach(({ beginning }, number) => {
        if (word.startsWith(beginning)) places[number].push(at);
      });
    });
    return places;
  });
}

function nearness(places, near, text) {
  if (near.length > MOST_NEAR) return 0;
  let sum = worthOf(places, near, near.map((_, at) => at), FAR, text);
  if (near.length > 2) {
    for (let at = 0; at + 1 < near.length; at += 1) {
      sum += PAIR_BOOST * worthOf(places, near, [at, at + 1], FAR_PAIR, text);
    }
  }
  return sum;
}

// What words near one another are worth in title or text: BM25 of how often they are near.
function worthOf(places, near, numbers, far, text) {
  const rarity = numbers.reduce((sum, number) => sum + near[number].rarity, 0);
  return Math.max(...places.map((part, at) => {
    const times = timesNear(numbers.map((number) => part[number]), far);
    const norm = 1.2 * (0.25 + (0.75 * text.words[at]) / about.words[at]);
    return times ? (rarity * 2.2 * times) / (times + norm) : 0;
  }));
}

// How often words are near one another: each at most `far` words in all from where it would follow.
function timesNear(lists, far) {
  return lists[0].filter((start) => {
    let at = start;
    let room = far;
    for (const list of lists.slice(1)) {
      const distance = (place) => Math.abs(place - at - 1);
      const next = list.reduce((best, place) => (distance(place) < distance(best) ? place : best), Infinity);
      room -= distance(next);
      at = next;
    }
    return room >= 0;
  }).length;
}

// The part of a text with most words of the query, as [text, is a mark] pairs.
function snippetOf(text, parts) {
  const matches = [...text.matchAll(WORD)].map((match) => {
    const word = fold(match[0].normalize("NFKC").toLowerCase());
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

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function item(text, parts) {
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

function steps(query, first, total) {
  const [here, last] = [Math.floor(first / PER_PAGE), Math.ceil(total / PER_PAGE) - 1];
  const nav = element("nav", { "aria-label": "Pages of results" });
  const link = (page, label, attributes = {}) => element("a",
    { href: `?${new URLSearchParams({ q: query, start: page * PER_PAGE })}`, ...attributes }, label);
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

// The number of the first result and the pages of a query, for the page and for tests.
export async function answer(query, start = 0) {
  about ??= await fetch("about.json").then((response) => response.json());
  const result = await search(query);
  const total = result.pages.length;
  const last = Math.max(0, Math.ceil(total / PER_PAGE) - 1) * PER_PAGE;
  const first = Math.min(Math.floor(start / PER_PAGE) * PER_PAGE, last);
  const texts = await Promise.all(result.pages.slice(first, first + PER_PAGE).map(
    ([page]) => read(`${about.data}/page-${page}.bin`)));
  return { ...result, first, total, texts };
}

// What is said of words that no page has.
function notes(query, missing) {
  return missing.map(([word, meant]) => {
    const note = element("p", { class: "notice" }, `No page has: ${word}`);
    if (meant) {
      const other = query.normalize("NFKC").toLowerCase().replaceAll(word, meant);
      note.append("; did you mean ",
        element("a", { href: `?${new URLSearchParams({ q: other })}` }, meant), "?");
    }
    return note;
  });
}

async function show(main, query, start) {
  const { first, total, texts, ignored, missing, parts } = await answer(query, start);
  const numbers = total > texts.length ? `${first + 1}–${first + texts.length} of ` : "";
  const count = total ? `${numbers}${total} ${total === 1 ? "page" : "pages"}` : "No page found.";
  main.replaceChildren(
    ...(ignored.length
      ? [element("p", { class: "notice" }, `Not searched here: ${ignored.join(" ")}`)] : []),
    ...notes(query, missing),
    element("p", { class: "soft", role: "status" }, count),
    element("ol", { class: "results", start: first + 1 }, ...texts.map((text) => item(text, parts))),
    steps(query, first, total));
}

async function complete(text) {
  about ??= await fetch("about.json").then((response) => response.json());
  const [, before, word] = text.match(/^(.*?)([^\s"-]*)$/s);
  const start = word.normalize("NFKC").toLowerCase();
  if (start.length < 2 || start.includes(":") || text.length > 100) return { words: [], pages: [] };
  const { forms, lists } = await shardOf(start);
  const pages = (form) => lists[forms[form][0]][0].length;
  const words = Object.keys(forms).filter((form) => form.startsWith(start) && form !== start);
  words.sort((a, b) => pages(b) - pages(a) || a.length - b.length);
  return { words: words.slice(0, 8).map((form) => before + form), pages: [] };
}

async function run() {
  const input = document.getElementById("query");
  const fields = new URLSearchParams(location.search);
  const query = (fields.get("q") ?? "").trim();
  input.value = query;
  completeWhileTyping(input, complete);
  if (!query) {
    input.focus();
    return;
  }
  document.title = `${query} - search`;
  const main = document.querySelector("main");
  main.replaceChildren(element("p", { class: "soft", role: "status" }, "Searching …"));
  try {
    await show(main, query, Number.parseInt(fields.get("start") ?? "0", 10) || 0);
  } catch (error) {
    main.replaceChildren(element("p", { role: "alert" }, `The index cannot be read: ${error.message}`));
  }
}

if (document.getElementById("query")) run();

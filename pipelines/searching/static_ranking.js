// Ranks pages by the scores of their words; what the server adds for words that are near one another is
// computed from the texts of the best pages.
import { WORD, about, fold, inForm, lookUp, readPage } from "./static_files.js";

const RERANKED = 30; // best pages whose texts are read
const WITH_PHRASE = 100; // of a query with a phrase: others are left out
const MOST_OF = 0.6; // of the words of a longer query, those that a page must have
const FAR = 8; // words between the words of a query that are near
const FAR_PAIR = 6;
const PAIR_BOOST = 0.8;
const MOST_NEAR = 8;
// Readings in brackets, which may stand within a word: document_terms.py.
const READING = /(?<=[\p{sc=Han}])\(([\p{sc=Hiragana}\p{sc=Katakana}ー\p{sc=Latin} '-]{1,60})\)/gu;

// { pages: [[page, score]], missing: [[clause, words]], parts } of clauses, best first; `has` selects pages.
export async function rank(clauses, has) {
  const common = new Set(about.common);
  const wanted = clauses.filter((clause) => !clause.excluded);
  const rare = wanted.filter((clause) => clause.follow || !common.has(clause.words[0]));
  const counted = rare.length ? rare : wanted;
  const results = await Promise.all(counted.map(pagesOf));
  const excluded = await Promise.all(clauses.filter((clause) => clause.excluded).map(pagesOf));
  const allowed = (page) => has(page) && !excluded.some((one) => one.pages.has(page));
  const missing = results.map((one, at) => [counted[at], one.missing]).filter(([, words]) => words.length);
  const parts = results.flatMap((one) => one.parts);
  const optional = counted.filter((clause) => !clause.follow).length;
  for (const least of [optional <= 2 ? optional : Math.ceil(optional * MOST_OF), Math.min(1, optional)]) {
    const pages = pagesWith(counted, results, least).filter(([page]) => allowed(page));
    if (pages.length || least <= 1) {
      pages.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      return { pages: await rerank(pages, counted, results), missing, parts };
    }
  }
}

// [[page, score]] of pages with at least so many of the words, and all that must follow one another.
function pagesWith(counted, results, least) {
  const [scores, numbers] = [new Map(), new Map()];
  results.forEach(({ pages }, at) => {
    for (const [page, score] of pages) {
      scores.set(page, (scores.get(page) ?? 0) + score);
      if (!counted[at].follow) numbers.set(page, (numbers.get(page) ?? 0) + 1);
    }
  });
  const required = results.filter((_, at) => counted[at].follow);
  return [...scores].filter(([page]) =>
    (numbers.get(page) ?? 0) >= least && required.every((one) => one.pages.has(page)));
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

// Reads the texts of the best pages, and orders these by what near words add to their scores.
async function rerank(pages, clauses, results) {
  const near = results.flatMap((one) => one.parts);
  const phrases = results.filter((_, at) => clauses[at].follow);
  if (near.length < 2) return pages;
  const number = phrases.length ? WITH_PHRASE : RERANKED;
  const best = await Promise.all(pages.slice(0, number).map(async ([page, score]) => {
    const text = await readPage(page);
    const places = placesOf(text, near);
    const follow = ({ parts }) => worthOf(places, near, parts.map((part) => near.indexOf(part)), 0, text);
    return phrases.every(follow) ? [page, score + text.factor * nearness(places, near, text)] : null;
  }));
  const ordered = best.filter(Boolean).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  return phrases.length ? ordered : [...ordered, ...pages.slice(RERANKED)];
}

const withReadingsLast = (text) =>
  [text.replace(READING, ""), ...[...text.matchAll(READING)].map(([, reading]) => reading)].join(" ");

// Where words begin so, in title and text, by the number of the word.
function placesOf(text, parts) {
  return [text.title, text.text].map((part) => {
    const places = parts.map(() => []);
    fold(withReadingsLast(inForm(part))).match(WORD)?.forEach((word, at) => {
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

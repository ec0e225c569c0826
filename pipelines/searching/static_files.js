// Loads the files of an exported index (static_export.py writes them), and looks words up in them.

export const SPACELESS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
export const WORD = new RegExp(`${SPACELESS.source}|(?:(?!${SPACELESS.source})[\\p{L}\\p{M}\\p{N}])+`, "gu");
const STEM_ENDS = 4; // letters of a word after what its forms share

const files = new Map(); // promises, by name
export let about; // about.json: what the index has

export async function readAbout() {
  about ??= await fetch("about.json").then((response) => response.json());
}

async function read(name) {
  if (!files.has(name)) {
    files.set(name, fetch(`${about.data}/${name}.bin`).then(async (answer) => {
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      return JSON.parse(await new Response(
        answer.body.pipeThrough(new DecompressionStream("gzip"))).text());
    }));
    files.get(name).catch(() => files.delete(name));
  }
  return files.get(name);
}

export const readPage = (page) => read(`page-${page}`);
export const readWords = (number) => read(`words-${number}`);
// Properties of all pages, by the number of the page: host, type, lang, time.
export const readProperties = () => read("properties");

export const inForm = (text) => text.normalize("NFKC").toLowerCase();
export const fold = (text) => text.normalize("NFD").replace(/\p{M}/gu, "");
export const wordsOf = (text) => inForm(text).match(WORD) ?? [];

// The number of the file that has a word: files have words in order, and about.shards has the first of each.
export function fileOf(word) {
  let at = about.shards.length - 1;
  while (at > 0 && about.shards[at] > word) at -= 1;
  return at;
}

// How many pages have a word of a file.
export const countPages = ({ forms, lists }, form) => lists[forms[form][0]][0].length;

// { pages: Map of scores by page, beginning, rarity }, or null if no page has the word.
export async function lookUp(word) {
  const { forms, lists } = await readWords(fileOf(word));
  const form = Object.hasOwn(forms, word) ? word : otherForm(word, forms);
  if (!form && fold(word) !== word) return lookUp(fold(word));
  if (!form) return null;
  const [list, beginning, rarity] = forms[form];
  const pages = new Map();
  const [gaps, scores] = lists[list];
  let page = 0;
  gaps.forEach((gap, at) => {
    page += gap;
    pages.set(page, scores[at] / about.scale);
  });
  return { pages, beginning, rarity };
}

// Another form of a word that no page has, such as heron of herons; or "".
function otherForm(word, forms) {
  if (word.length < 4) return "";
  const start = word.slice(0, Math.max(4, word.length - 3));
  const near = Object.keys(forms).filter((other) => {
    const beginning = forms[other][1];
    return other.startsWith(start) && word.startsWith(beginning) &&
      Math.max(word.length, other.length) - beginning.length <= STEM_ENDS;
  });
  return near.sort((a, b) => a.length - b.length)[0] ?? "";
}

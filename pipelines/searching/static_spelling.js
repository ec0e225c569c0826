// Finds the word that a misspelt word was probably meant to be, as policy/searching/spelling.py does.
import { countPages, fileOf, readWords } from "./static_files.js";

const SHORTEST = 4; // letters of a word that is corrected
const LONGEST = 40;
const SURE = 5; // letters of a word whose correction is sure
const TWO_MISTAKES = 6; // letters of a word that may have two
const MOST_FILES = 8; // that are read for a word: a mistake in its first letters may be anywhere
const USUAL = 0.5; // more for letters that changed places, and for one letter in the place of two

// { text, isSure } of a word that no page has, in lower case; null if there is none.
export async function correct(word) {
  if (word.length < SHORTEST || word.length > LONGEST || !/^\p{L}+$/u.test(word)) return null;
  const own = await readWords(fileOf(word));
  const near = await oneMistakeAway(word, own);
  const best = near.sort((a, b) => b[1] - a[1])[0]?.[0];
  if (best) return { text: best, isSure: word.length >= SURE && best[0] === word[0] };
  const far = word.length < TWO_MISTAKES ? [] : Object.keys(own.forms).filter(
    (form) => form[0] === word[0] && Math.abs(form.length - word.length) <= 2 && mistakes(form, word) === 2);
  far.sort((a, b) => countPages(own, b) - countPages(own, a));
  return far.length ? { text: far[0], isSure: false } : null;
}

// [word of the index, how likely it was meant] of those with one mistake.
async function oneMistakeAway(word, own) {
  const letters = [...new Set(Object.keys(own.forms).join(""))].filter((one) => /\p{Ll}|\p{Lo}/u.test(one));
  const byFile = new Map();
  for (const candidate of candidates(word, letters.slice(0, 64))) {
    const number = fileOf(candidate);
    byFile.set(number, [...(byFile.get(number) ?? []), candidate]);
  }
  const isOwn = (number) => number === fileOf(word);
  const numbers = [...byFile.keys()].sort(
    (a, b) => isOwn(b) - isOwn(a) || byFile.get(b).length - byFile.get(a).length).slice(0, MOST_FILES);
  const found = await Promise.all(numbers.map(async (number) => {
    const words = await readWords(number);
    return [...new Set(byFile.get(number))].filter((one) => Object.hasOwn(words.forms, one) && one !== word).map(
      (one) => [one, Math.log10(countPages(words, one)) + (isUsual(word, one) ? USUAL : 0)]);
  }));
  return found.flat();
}

function* candidates(word, letters) {
  for (let at = 0; at <= word.length; at += 1) {
    const [start, end] = [word.slice(0, at), word.slice(at)];
    if (end.length > 1) yield start + end[1] + end[0] + end.slice(2);
    if (end) yield start + end.slice(1);
    for (const letter of letters) {
      if (end) yield start + letter + end.slice(1);
      yield start + letter + end;
    }
  }
}

// Whether letters have changed places, or one letter stands for two of its kind or two for one.
function isUsual(one, other) {
  const sorted = (letters) => [...letters].sort().join("");
  return sorted(one) === sorted(other) || sorted(new Set(one)) === sorted(new Set(other));
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

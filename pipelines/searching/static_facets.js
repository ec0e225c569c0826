// Facets of a result, the filters that choose their values, and the order by date.
import { readProperties } from "./static_files.js";

const MOST_VALUES = 8; // of a facet

// A function that says whether a page passes all filters.
export async function selector(filters) {
  if (!filters.length) return () => true;
  const of = await readProperties();
  const tests = {
    site: (page, value) => of.sites[of.host[page]].some((site) => site === value || site.endsWith(`.${value}`)),
    type: (page, value) => {
      const type = of.types[of.type[page]] ?? "";
      return type === value || type.split("/").includes(value);
    },
    lang: (page, value) => of.langs[of.lang[page]] === value,
    after: (page, value) => of.time[page] !== null && of.time[page] >= value,
    before: (page, value) => of.time[page] !== null && of.time[page] < value,
  };
  return (page) => filters.every(({ name, value, excluded }) => tests[name](page, value) !== excluded);
}

// All pages of the index, by their numbers.
export async function allPages() {
  return (await readProperties()).host.map((_, page) => page);
}

// Pages, newest first; those without a date are last.
export async function byDate(pages) {
  const { time } = await readProperties();
  const key = ([page]) => time[page] ?? -Infinity;
  return [...pages].sort((a, b) => (key(b) > key(a)) - (key(b) < key(a)) || a[0] - b[0]);
}

// [{ name, values: [{ label, pages, query }] }] of pages.
export async function countFacets(pages) {
  const of = await readProperties();
  const numbers = pages.map(([page]) => page);
  const language = new Intl.DisplayNames(["en"], { type: "language" });
  const count = (valuesOf) => {
    const counts = new Map();
    for (const page of numbers) {
      for (const value of valuesOf(page)) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  };
  const sites = count((page) => of.sites[of.host[page]]);
  // A domain with pages of one host only is left out.
  const hosts = sites.filter(([site, pages_]) =>
    !sites.some(([other, same]) => other.endsWith(`.${site}`) && same === pages_));
  // Values that an operator can name; texts of pages may be anything.
  const types = count((page) => [of.types[of.type[page]]].filter((type) => /^[^\s"/]+\/[^\s"]+$/.test(type)));
  const langs = count((page) => [of.langs[of.lang[page]]].filter((lang) => /^[a-z]{2,3}$/.test(lang)));
  const years = count((page) => [new Date(1000 * (of.time[page] ?? NaN)).getUTCFullYear()].filter(
    (year) => year >= 1970 && year < 2100));
  years.sort((a, b) => b[0] - a[0]);
  const facet = (name, pairs, label, query) => ({ name, values: pairs.slice(0, MOST_VALUES).map(
    ([value, number]) => ({ label: label(value), pages: number, query: query(value) })) });
  return [
    facet("host", hosts, (site) => site, (site) => `site:${site}`),
    facet("type", types, (type) => type.split("/")[1], (type) => `type:${type}`),
    facet("language", langs, (lang) => language.of(lang), (lang) => `lang:${lang}`),
    facet("year", years, String, (year) => `after:${year} before:${year + 1}`),
  ];
}

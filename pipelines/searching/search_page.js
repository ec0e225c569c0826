import { completeWhileTyping } from "./combobox.js";

completeWhileTyping(document.getElementById("query"), async (text, signal) => {
  const answer = await fetch(`complete.json?${new URLSearchParams({ q: text })}`, { signal });
  return answer.ok ? answer.json() : { words: [], pages: [] };
});

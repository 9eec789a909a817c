// Parts of pages, fetched from the server and added without a reload.

// What a page fetches by itself is no activity of its person.
const LIVE = { "HX-Request": "true", "Agent-Adapter-Live": "1" };

/** The part at `path` as a document fragment; `null` if it is not there (any more). */
export const fetchFragment = async (path) => {
  const answer = await fetch(path, { headers: LIVE, credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return null;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  return holder.content;
};

/** The page at `path` as a document; `null` if it is not there (any more). */
export const fetchPage = async (path) => {
  const answer = await fetch(path, { headers: { "Agent-Adapter-Live": "1" }, credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
};

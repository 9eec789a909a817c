// The page of a run follows the run; what somebody reads or types stays as it is.
import { announce } from "./announce.js";
import { fetchPage } from "./fragments.js";

const items = document.querySelector("[data-follow-run]");
const id = items && items.getAttribute("data-follow-run");
let known = null;

const refresh = async () => {
  const page = await fetchPage(location.pathname + location.search);
  if (!page) return;
  for (const selector of ["#main dl.facts", "#items"]) {
    const fresh = page.querySelector(selector);
    const old = document.querySelector(selector);
    if (fresh && old && !old.contains(document.activeElement)) old.replaceWith(document.importNode(fresh, true));
  }
  announce("The run has changed.");
};

if (items) {
  let work = Promise.resolve();
  document.addEventListener("live", ({ detail }) => {
    const entries = detail.runs && detail.runs[id];
    if (entries === undefined || entries === known) return;
    const isFirst = known === null;
    known = entries;
    if (!isFirst) work = work.then(refresh).catch(() => {});
  });
}

// The page of a channel: its transcript and its state follow the channel.
import { announce } from "./announce.js";
import { fetchFragment, fetchPage } from "./fragments.js";

const log = document.querySelector("[data-follow-channel]");
const id = log && log.getAttribute("data-follow-channel");
let shownState = null;

// What somebody is writing, or has chosen, is left alone.
const isTouched = (element) => element.contains(document.activeElement)
  || Array.from(element.querySelectorAll("textarea"), (field) => field.value.trim()).some(Boolean);

// Replaces the state beside the transcript.
const refreshState = async () => {
  const page = await fetchPage(location.pathname);
  if (!page) return;
  for (const selector of ["#state", "#main dl.facts", "section[aria-labelledby=side]", "#speak"]) {
    const fresh = page.querySelector(selector);
    const old = document.querySelector(selector);
    if (fresh && old && !isTouched(old)) old.replaceWith(document.importNode(fresh, true));
  }
  const old = document.querySelector("#speak [name=turn]");
  const fresh = page.querySelector("#speak [name=turn]");
  const note = document.getElementById("moved-on");
  // The text that is being written stays, and so does the turn that it was begun for.
  if (note) note.hidden = !(old && fresh && old.value !== fresh.value);
};

const isAtEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 120;

const addEntries = async (entries) => {
  if (entries <= Number(log.dataset.last)) return;
  const content = await fetchFragment(`${log.dataset.entries}?since=${log.dataset.last}`);
  if (!content) return;
  const follows = log.dataset.order !== "newest" && isAtEnd();
  const fresh = Array.from(content.children);
  if (log.dataset.order === "newest") log.prepend(...fresh.reverse());
  else log.append(...fresh);
  log.dataset.last = String(entries);
  if (follows && fresh.length) fresh[fresh.length - 1].scrollIntoView({ block: "nearest" });
};

if (log) {
  let work = Promise.resolve();
  document.addEventListener("live", ({ detail }) => {
    const change = detail.channels && detail.channels[id];
    if (!change) return;
    work = work.then(async () => {
      const before = shownState;
      shownState = `${change.state} ${change.expected} ${change.turn}`;
      await addEntries(change.entries);
      // On the first event as well: the state may have changed since the page was rendered.
      if (before !== shownState) await refreshState();
    }).catch(() => announce("This page could not be brought up to date. Reload it."));
  });
}

// The graph is drawn whole; buttons make it larger.
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-zoom]") : null;
  const graph = button && button.closest("[data-graph]").querySelector("svg");
  if (!graph) return;
  const step = Number(button.dataset.zoom);
  const factor = step === 0 ? 1 : Math.min(8, Math.max(1, Number(graph.dataset.factor || 1) * step));
  graph.dataset.factor = String(factor);
  graph.style.width = factor === 1 ? "" : `${factor * 100}%`;
  graph.style.maxWidth = factor === 1 ? "" : "none";
  graph.style.maxHeight = factor === 1 ? "" : "none";
});

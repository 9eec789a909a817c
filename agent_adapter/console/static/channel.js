// The page of a channel: its transcript and its state follow the channel.
import { fetchFragment, fetchPage } from "./fragments.js";

const log = document.querySelector("[data-live-log]");

// Replaces the state beside the transcript, but not an element that has the focus.
const refreshState = async () => {
  const page = await fetchPage(location.pathname);
  if (!page) return;
  for (const selector of ["#state", "#main dl.facts", "section[aria-labelledby=side]"]) {
    const fresh = page.querySelector(selector);
    const old = document.querySelector(selector);
    if (fresh && old && !old.contains(document.activeElement)) old.replaceWith(document.importNode(fresh, true));
  }
  if (!document.querySelector(".speak") && page.querySelector(".speak")) {
    log.after(document.importNode(page.querySelector(".speak"), true));
  }
};

if (log && window.EventSource) {
  const source = new EventSource(log.dataset.liveLog);
  let shownState = null;
  source.addEventListener("change", async (event) => {
    const change = JSON.parse(event.data);
    const before = shownState;
    shownState = `${change.state} ${change.expected} ${change.turn}`;
    if (change.entries > Number(log.dataset.last)) {
      const content = await fetchFragment(`${log.dataset.entries}?since=${log.dataset.last}`);
      if (content) {
        log.append(content);
        log.dataset.last = String(change.entries);
      }
    }
    // On the first event as well: the state may have changed since the page was rendered.
    if (before !== shownState) await refreshState();
  });
  window.addEventListener("pagehide", () => source.close());
}

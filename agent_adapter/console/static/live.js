// Keeps a page up to date, and says where it is not.
import { announce } from "./announce.js";
import { notifies, notify, offer } from "./notices.js";
import { Stream } from "./stream.js";

const banner = document.getElementById("connection");
const title = document.title;
let wasLost = false;

const topics = (name) => Array.from(document.querySelectorAll(`[data-follow-${name}]`), (each) => each.getAttribute(`data-follow-${name}`));
const wants = () => ({ visible: document.visibilityState === "visible", notify: notifies(), channels: topics("channel"), runs: topics("run") });

const SAID = {
  lost: "The connection to the console is lost. What this page shows may be out of date. Trying again …",
  "signed-out": "You are signed out: this page is out of date, and nothing can be decided on it.",
};

const show = (status, text) => {
  if (!banner) return;
  const said = text || SAID[status];
  banner.hidden = !said;
  banner.dataset.status = status;
  if (said && banner.firstChild?.textContent !== said) {
    banner.textContent = said;
    if (status === "signed-out") {
      const link = document.createElement("a");
      link.href = `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
      link.textContent = "Sign in again";
      banner.append(" ", link);
    }
  }
  if (status === "lost") wasLost = true;
  if (status === "open" && wasLost) {
    wasLost = false;
    announce("The connection is back; this page is up to date.");
  }
};

const count = (counts) => {
  for (const [name, number] of Object.entries(counts)) {
    for (const tag of document.querySelectorAll(`[data-count="${name}"]`)) {
      tag.textContent = String(number);
      tag.hidden = number === 0;
    }
  }
  const mine = counts.waiting + counts.doubt + counts.turns;
  document.title = mine ? `(${mine}) ${title}` : title;
  notify(counts);
};

const hear = (message) => {
  if (message.status) show(message.status, message.text);
  if (!message.change) return;
  if (message.change.counts) count(message.change.counts);
  document.dispatchEvent(new CustomEvent("live", { detail: message.change }));
};

const connect = () => {
  try {
    const worker = new SharedWorker("/static/stream-worker.js", { type: "module", name: "agent-adapter" });
    worker.port.addEventListener("message", ({ data }) => hear(data));
    worker.port.start();
    return (data) => worker.port.postMessage(data);
  } catch {
    // Not every browser has shared workers: then each page that is looked at has a stream.
    const stream = new Stream((page, message) => hear(message));
    return (data) => {
      if (data === "gone") stream.remove(hear);
      else if (data === "online") stream.hurry();
      else stream.update(hear, data);
    };
  }
};

const start = () => {
  const tell = connect();
  tell(wants());
  document.addEventListener("visibilitychange", () => tell(wants()));
  window.addEventListener("pageshow", (event) => event.persisted && tell(wants()));
  window.addEventListener("pagehide", () => tell("gone"));
  window.addEventListener("online", () => tell("online"));
  window.addEventListener("offline", () => show("lost"));
  offer(() => tell(wants()));
};

// Not before the page's other modules listen. The sign-in page has no banner, and nothing to follow.
if (banner) document.addEventListener("DOMContentLoaded", start);

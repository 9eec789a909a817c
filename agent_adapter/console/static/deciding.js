// Decisions on records: one deliberate act each, on the record that the person chose.
import { announce } from "./announce.js";
import { holdUnopened } from "./opening.js";
import "./clock.js";
import { disarm, free, held, hold, isSeen, moved, refusal, settle } from "./arming.js";

const LOST = "No answer from the console: it is not known whether the decision was recorded. Reload the page before you decide again.";

const SENT = "A decision on this request is on its way to the console.";
const CHANGED = "Nothing was decided: this request has just changed. Look, then decide.";

const chosen = () => document.activeElement && document.activeElement.closest("[data-record]");

/** Say in the record, and aloud, why nothing was decided. */
export const tell = (record, text) => {
  announce(text);
  if (!record) return;
  let line = record.querySelector("[data-problem]");
  if (!line) {
    line = document.createElement("p");
    line.className = "problem";
    line.dataset.problem = "";
    line.setAttribute("role", "alert");
    record.append(line);
    moved(); // what follows this record
  }
  line.textContent = text;
};

const moveFocus = (step) => {
  // The page of one record goes on to another page.
  if (document.querySelector("section[data-record], section[data-gone]")) {
    return document.dispatchEvent(new CustomEvent("go", { detail: step }));
  }
  // From a decided record, too, which keeps its place.
  const here = document.activeElement && document.activeElement.closest("[data-record], [data-gone]");
  const places = Array.from(document.querySelectorAll("[data-record], [data-gone]"));
  const from = here ? places.indexOf(here) : step > 0 ? -1 : places.length;
  const ahead = step > 0 ? places.slice(from + 1) : places.slice(0, Math.max(0, from)).reverse();
  const next = ahead.find((each) => each.matches("[data-record]"));
  if (!next) return;
  next.focus({ preventScroll: true });
  // At once: a button that still moves cannot be used.
  for (const each of [next, next.querySelector("[data-approve]")]) {
    if (each) each.scrollIntoView({ block: "nearest", behavior: "instant" });
  }
};

const press = (name) => {
  const record = chosen();
  if (!record) return announce("Nothing was decided: choose a request first, with j or k.");
  const button = record.querySelector(`[data-${name}]`);
  if (!button) {
    const link = record.querySelector("[data-open]");
    return link ? link.click() : undefined;
  }
  const why = held(button, { byKey: true });
  if (why !== null) return tell(record, why);
  if (button.matches("[data-decides]") && !isSeen(button)) {
    return tell(record, "Nothing was decided: the button is not on the screen. Scroll to it first.");
  }
  button.click();
};

const KEYS = { j: () => moveFocus(1), k: () => moveFocus(-1), a: () => press("approve"), d: () => press("deny"), e: () => press("edit") };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const target = event.target;
  if (target instanceof Element && target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (!Object.hasOwn(KEYS, event.key) || !document.querySelector("[data-record], [data-gone]")) return;
  event.preventDefault();
  KEYS[event.key]();
});

// Before any other listener: a click that is no decision reaches nothing.
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-decides]") : null;
  if (!button) return;
  const why = refusal(button, event);
  if (why === null) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  tell(button.closest("[data-record]"), why);
}, { capture: true });

const problemIn = (text, status) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const problem = page.querySelector("main .problem");
  return problem ? problem.textContent.trim() : `Error ${status}: nothing was decided.`;
};

/** Put `fresh` in the place of `record`: the list does not move, and the focus stays where it was. */
export const replaceRecord = (record, fresh) => {
  const height = record.getBoundingClientRect().height;
  const inside = record.contains(document.activeElement);
  const pending = fresh.matches("[data-record]");
  // The same place in the list, whatever is in it now.
  for (const name of ["data-record", "data-gone"]) record.toggleAttribute(name, fresh.hasAttribute(name));
  record.className = fresh.className;
  record.replaceChildren(...fresh.childNodes);
  record.style.minHeight = pending ? "" : `${height}px`;
  if (inside) record.focus({ preventScroll: true });
  disarm();
  settle(record, CHANGED);
  holdUnopened(record);
};

/** A page that the console answers with, in the place of this one. */
const showPage = (text) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.querySelector("section[data-record]");
  const old = document.querySelector("section[data-record]");
  if (!fresh || !old) return location.reload();
  replaceRecord(old, document.importNode(fresh, true));
};

const send = async (form, submitter) => {
  const record = form.closest("[data-record], [data-gone]");
  const inList = form.matches("[data-in-place]");
  const data = new URLSearchParams(new FormData(form, submitter));
  const buttons = Array.from(form.querySelectorAll("[data-decides]"));
  for (const button of buttons) hold(button, SENT);
  try {
    const answer = await fetch(form.action, { method: "POST", body: data, credentials: "same-origin", headers: inList ? { "HX-Request": "true" } : {} });
    const text = await answer.text();
    if (!answer.ok) return tell(record, problemIn(text, answer.status));
    if (!inList) return answer.redirected ? location.assign(answer.url) : showPage(text);
    const holder = document.createElement("template");
    holder.innerHTML = text;
    const fresh = holder.content.firstElementChild;
    if (fresh) replaceRecord(record, fresh);
    announce(record.matches("[data-gone]") ? "Decided." : "Recorded.");
    document.dispatchEvent(new CustomEvent("decided", { detail: record.id }));
  } catch {
    tell(record, LOST);
  } finally {
    for (const button of buttons) free(button, SENT);
  }
};

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.matches("[data-deciding]")) return;
  // Without a button it was Enter in a field, which decides nothing.
  if (!event.submitter || !event.submitter.matches("[data-decides]")) {
    event.preventDefault();
    event.stopImmediatePropagation();
    announce("Nothing was decided: use a button.");
  } else if (form.matches("[data-in-place], form.decide")) {
    event.preventDefault();
    send(form, event.submitter);
  }
}, { capture: true });

holdUnopened(document);

// The inbox follows the store: what is new is added at its end, what was decided keeps its place.
import "./clock.js";
import { announce } from "./announce.js";
import { disarm, hold, settle } from "./arming.js";
import { replaceRecord } from "./deciding.js";
import { fetchFragment } from "./fragments.js";
import { holdUnopened } from "./opening.js";

const list = document.getElementById("records");

const partOf = async (id, part) => {
  const content = await fetchFragment(`/approvals/${encodeURIComponent(id)}/${part}`);
  return content && content.firstElementChild;
};

const updateTotal = (total) => {
  const tag = document.getElementById("total");
  if (tag) tag.textContent = `${total} pending`;
  const empty = document.getElementById("empty");
  if (empty) empty.hidden = total > 0 || list.querySelector("[data-record]") !== null;
};

/** A record that was decided elsewhere stays where it is, with how it ended. */
const closeRecord = async (id) => {
  const record = document.getElementById(id);
  if (!record || !list.contains(record) || !record.matches("[data-record]")) return;
  // At once: a click on its way must not find a button.
  for (const button of record.querySelectorAll("[data-decides]")) hold(button, "This request was decided elsewhere.");
  disarm();
  const fresh = await partOf(id, "outcome");
  if (fresh && record.matches("[data-record]")) replaceRecord(record, fresh);
};

const addRecord = async (id) => {
  if (document.getElementById(id)) return;
  const record = await partOf(id, "outcome");
  // It may be decided by now.
  if (!record || !record.matches("[data-record]") || document.getElementById(id)) return;
  list.append(record);
  settle(record);
  holdUnopened(record);
  const name = record.querySelector("h2");
  announce(`New request: ${name ? name.textContent.trim() : id}`);
};

/** Bring the list to what an event of the stream says. */
export const follow = async (change) => {
  await closeDecided();
  // A search, and a later page, show what they have found; they do not grow.
  if (list.dataset.live !== undefined) for (const id of change.ids || change.added) await addRecord(id);
  updateTotal(change.total);
};

/** Ask which of the records on this page wait no more, and close them. */
const closeDecided = async () => {
  const shown = Array.from(list.querySelectorAll("[data-record]"), (record) => record.id);
  if (!shown.length) return;
  const answer = await fetch(`/approvals/decided?${new URLSearchParams(shown.map((id) => ["id", id]))}`, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return;
  for (const id of (await answer.json()).decided) await closeRecord(id);
};

if (list && list.dataset.follows !== undefined) {
  let work = Promise.resolve();
  document.addEventListener("live", ({ detail }) => {
    if (detail.inbox) work = work.then(() => follow(detail.inbox)).catch(() => {});
  });
}

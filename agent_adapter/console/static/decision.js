// The page of one record: chosen by opening it; next and previous by keys or by a swipe.
import { settle } from "./arming.js";
import "./deciding.js";

const LOOK = "Nothing was decided: this request has just come up. Look, then decide.";
const SWIPE = 90;
const record = document.querySelector("section[data-record], section[data-gone]");

if (record && !location.hash) {
  // Chosen by opening its page; for a moment a key on its way from the page before does nothing.
  settle(record, LOOK);
  record.focus({ preventScroll: true });
}

const go = (name) => {
  const link = document.querySelector(`[data-${name}]`);
  if (link) link.click();
};

document.addEventListener("go", (event) => go(event.detail > 0 ? "next" : "previous"));

let from = null;
document.addEventListener("touchstart", (event) => {
  const inText = event.target instanceof Element && event.target.closest("input, textarea, select, pre, .v, .scroll");
  from = event.touches.length === 1 && !inText ? { x: event.touches[0].clientX, y: event.touches[0].clientY } : null;
}, { passive: true });
document.addEventListener("touchend", (event) => {
  if (!from) return;
  const to = event.changedTouches[0];
  const across = to.clientX - from.x;
  if (Math.abs(across) > SWIPE && Math.abs(to.clientY - from.y) < SWIPE / 2) go(across < 0 ? "next" : "previous");
  from = null;
}, { passive: true });

// Which click decides: only one on a button that the person has pointed at since it was there.
//
// A list may move while a hand is on its way to a button. A click counts if the pointer was moved
// onto this very button after the last change of the page, or if the button has the focus.

const SETTLE_MS = 600;
const SCROLLING_MS = 1500;
const DECIDES = "[data-decides]";

let pointed = null;
let last = null;
let movedAt = 0;
let turnedAt = -Infinity;
let scrolledAt = 0;

const holds = new WeakMap();
const NEW = "Nothing was decided: this has just appeared. Look, then decide.";

/** Keep `button` from being used, and say `why` to who tries; `free` with the same reason ends it. */
export const hold = (button, why) => {
  holds.set(button, (holds.get(button) || new Set()).add(why));
  // Not `disabled`: it stays in the order of the Tab key, and says why it does nothing.
  button.setAttribute("aria-disabled", "true");
};

/** End a hold; the button can be used once no other reason is left. */
export const free = (button, why) => {
  const reasons = holds.get(button);
  if (!reasons) return;
  reasons.delete(why);
  if (!reasons.size) button.removeAttribute("aria-disabled");
};

/** Why `button` is held; `null` if it is not. What the person chose by key may be new on the page. */
export const held = (button, { byKey = false } = {}) => {
  const reasons = Array.from(holds.get(button) || []).filter((why) => !(byKey && why === NEW));
  return reasons.length ? reasons[0] : null;
};

/** Buttons in `part` have just appeared: for a moment a click on them is no decision. */
export const settle = (part, why = NEW) => {
  const buttons = Array.from(part.querySelectorAll(DECIDES));
  for (const button of buttons) hold(button, why);
  setTimeout(() => buttons.forEach((button) => free(button, why)), SETTLE_MS);
};

/** Buttons have moved: for a moment a tap may hit another than the one that was aimed at. */
export const moved = () => { movedAt = performance.now(); };

/** The page has changed: what the pointer rests on may not be what it was moved to. */
export const disarm = () => {
  pointed = null;
  moved();
};

/** Why a click on `button` is no decision; `null` if it is one. */
export const refusal = (button, event) => {
  const byKey = !event.pointerType;
  const why = held(button, { byKey });
  if (why !== null) return why;
  if (!event.isTrusted) return null;
  if (event.detail > 1) return "Nothing was decided: a double click counts once.";
  // Keys and assistive technology: what has the focus was chosen, and focus moves by hand alone.
  if (byKey) {
    return document.activeElement === button ? null : "Nothing was decided: choose the button first.";
  }
  const now = performance.now();
  if (event.pointerType !== "mouse") {
    return now - movedAt < SETTLE_MS ? "Nothing was decided: the page has just changed. Look, then tap again." : null;
  }
  if (pointed === button) return null;
  const scrolled = scrolledAt > movedAt && now - scrolledAt > SETTLE_MS;
  if (scrolled) return null;
  return "Nothing was decided: this button moved under the pointer. Look, then move to it and click.";
};

const isOnScreen = (box) =>
  box.width > 0 && box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;

/** Whether all of `button` can be seen, and nothing lies over it. */
export const isSeen = (button) => {
  const box = button.getBoundingClientRect();
  if (!isOnScreen(box)) return false;
  const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  return top !== null && button.contains(top);
};

// Browsers also send `pointermove` when the page moves under a pointer that rests: it is at the old
// place on the screen. The first one of a page has no old place: without coalesced events, which not
// every browser lists, it only says where the pointer rests, and the next one is the hand's.
const isByHand = (event) => {
  const before = last;
  last = { x: event.screenX, y: event.screenY };
  if (before) return before.x !== last.x || before.y !== last.y;
  return Boolean(event.getCoalescedEvents) && event.getCoalescedEvents().length > 0;
};

document.addEventListener("pointermove", (event) => {
  if (!isByHand(event)) return;
  scrolledAt = 0; // from now on counts what the hand points at, not what it scrolled to before
  pointed = event.target instanceof Element ? event.target.closest(DECIDES) : null;
}, { capture: true, passive: true });

// A page that comes back from the browser's cache is as new as one that was loaded.
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  last = null;
  disarm();
  settle(document);
});

// A browser also scrolls by itself, where a page becomes shorter: only a person's scrolling counts.
for (const name of ["wheel", "touchmove", "keydown"]) {
  document.addEventListener(name, () => { turnedAt = performance.now(); }, { capture: true, passive: true });
}

document.addEventListener("scroll", () => {
  const now = performance.now();
  if (now - turnedAt < SCROLLING_MS) scrolledAt = now;
}, { capture: true, passive: true });

settle(document);

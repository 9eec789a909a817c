// Notifications of the browser, for people who ask for them.

const KEY = "agent-adapter-notices";
const button = document.getElementById("notices");
let before = null;

const granted = () => window.Notification?.permission === "granted";

/** Whether this browser shows notifications of the console. */
export const notifies = () => granted() && localStorage.getItem(KEY) === "on";

/** Offer to switch them on or off; `changed` is called after that. */
export const offer = (changed) => {
  if (!button || !window.Notification || !window.isSecureContext) return;
  const label = () => {
    button.textContent = notifies() ? "Stop notifying me" : "Notify me";
    button.hidden = window.Notification.permission === "denied";
  };
  button.addEventListener("click", async () => {
    const on = !notifies();
    if (on && !granted()) await window.Notification.requestPermission();
    localStorage.setItem(KEY, on ? "on" : "off");
    label();
    changed();
  });
  label();
};

/** Notify of what has become more since the last counts; not on the page that is looked at. */
export const notify = (counts) => {
  const old = before;
  before = counts;
  if (!old || !notifies() || document.visibilityState === "visible") return;
  const news = [
    counts.waiting > old.waiting && [`${counts.waiting} waiting for approval`, "/approvals"],
    counts.doubt > old.doubt && [`${counts.doubt} writes in doubt`, "/in-doubt"],
    counts.turns > old.turns && [`It is your turn in ${counts.turns} channels`, "/channels?mine=1"],
  ].filter(Boolean);
  if (!news.length) return;
  // One tag: several pages of a browser show one notification.
  const shown = new Notification("Agent Adapter", { body: news.map(([text]) => text).join("\n"), tag: "agent-adapter" });
  shown.addEventListener("click", () => {
    window.focus();
    location.assign(news[0][1]);
  });
};

// Times as the person's own clock has them, what is left counting down, and windows to undo.

const SOON_S = 300;

const local = (time) => {
  const at = new Date(time.dateTime);
  if (time.dataset.local || Number.isNaN(at.getTime())) return;
  time.dataset.local = "1";
  if (!time.title) time.title = time.textContent;
  time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
};

const said = (seconds) => {
  if (seconds <= 0) return "expired";
  const s = Math.floor(seconds);
  if (s < 3600) return `expires in ${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
  return s < 172800 ? `expires in ${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min` : `expires in ${Math.floor(s / 86400)} days`;
};

const untils = new WeakMap();
const leftOf = (element, seconds) => {
  if (!untils.has(element)) untils.set(element, performance.now() + Number(seconds) * 1000);
  return (untils.get(element) - performance.now()) / 1000;
};

// Only what differs: the page is watched for changes.
const write = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

const tick = () => {
  for (const time of document.querySelectorAll("time[datetime]:not([data-local])")) local(time);
  for (const element of document.querySelectorAll("[data-left]")) {
    const left = leftOf(element, element.dataset.left);
    write(element, said(left));
    element.classList.toggle("soon", left < SOON_S);
  }
  for (const form of document.querySelectorAll("[data-held]")) {
    const left = leftOf(form, form.dataset.held);
    const number = form.querySelector("[data-seconds]");
    if (left > 0 && number) write(number, String(Math.ceil(left)));
    if (left <= 0 && form.firstChild) form.replaceChildren();
  }
};

tick();
setInterval(tick, 1000);
new MutationObserver(tick).observe(document.body, { childList: true, subtree: true });

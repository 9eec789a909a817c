// Says something to people who listen to the page, and shows it where everybody sees it.

const live = () => document.getElementById("live");

/** Say `text` in the page's live region. */
export const announce = (text) => {
  const region = live();
  if (!region) return;
  // A text that is said twice is read twice only if the region was empty in between.
  region.textContent = "";
  region.textContent = text;
};

// A long value is approved only after its rest was opened.
import { free, hold } from "./arming.js";

const REST = "Nothing was decided: open the rest of what will run first.";

/** Hold the Approve button of each form in `part` until everything that is folded was opened. */
export const holdUnopened = (part) => {
  const forms = part.matches && part.matches("form") ? [part] : part.querySelectorAll("form.decide");
  for (const form of forms) {
    const rests = Array.from(form.querySelectorAll("[data-rest]"));
    const whole = form.querySelector("[data-whole]");
    const button = form.querySelector("[data-approve]");
    if (!whole || !button || whole.value) continue;
    const unopened = new Set(rests.filter((rest) => !rest.open));
    const look = () => {
      if (unopened.size) return;
      whole.value = "1";
      free(button, REST);
    };
    hold(button, REST);
    for (const rest of unopened) {
      rest.addEventListener("toggle", () => {
        if (rest.open) unopened.delete(rest);
        look();
      });
    }
    look();
  }
};

// How many requests are selected on this page.

const bar = document.getElementById("bulk");

if (bar) {
  document.addEventListener("change", () => {
    const picked = document.querySelectorAll("[data-pick]:checked").length;
    bar.querySelector("[data-picked]").textContent = String(picked);
  });
}

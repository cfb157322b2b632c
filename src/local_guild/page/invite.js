// The button of an invite, with the page's key, which a form by itself could not show.

const form = document.querySelector("form");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const headers = { Accept: "text/html", "X-Page-Key": localStorage.getItem("key") ?? "" };
  const answer = await fetch(form.getAttribute("action"), { method: "POST", headers });
  if (answer.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
    return;
  }
  const words = document.createElement("p");
  words.textContent = answer.status === 401
    ? "First open the guild's page by the whole address that the terminal shows."
    : `It did not work (${answer.status}).`;
  form.after(words);
});

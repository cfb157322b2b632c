// Dialogs: forms that an application opens, questions of the page itself, and images.

import { act, Refused } from "./api.js";
import { el } from "./dom.js";
import { pickFrom } from "./pick.js";
import { world } from "./store.js";
import { word } from "./words.js";

const box = document.getElementById("dialog");

function present(title, ...children) {
  box.className = "dialog";
  box.replaceChildren(el("h2", { id: "dialog-title" }, title), ...children);
  box.showModal();
}

const close = () => box.close();

/** The inputs of a form with their labels, whichever way they are wrapped. */
function inputs(data) {
  return data.components.flatMap((row) => {
    if (row.type === 18) return [{ label: row.label, about: row.description, input: row.component }];
    if (row.type === 10) return [{ text: row.content }];
    return (row.components ?? []).map((input) => ({ label: input.label, input }));
  });
}

function entry({ label, about, input, text }, at) {
  if (text) return el("p", {}, text);
  const id = `dialog-${at}`;
  const required = input.required !== false;
  const common = { id, name: input.custom_id, required, "aria-describedby": about ? `${id}-about` : null };
  let node;
  if (input.type !== 4) node = pickFrom(input, common);
  else {
    const shared = { ...common, placeholder: input.placeholder, minlength: input.min_length, maxlength: input.max_length };
    node = input.style === 2 ? el("textarea", { ...shared, rows: 4 }, input.value ?? "") : el("input", { ...shared, value: input.value });
  }
  return el("div", { class: "dialog-field" },
    el("label", { for: id }, label ?? input.custom_id, required ? null : el("small", {}, ` ${word("optional")}`)),
    about && el("p", { class: "about", id: `${id}-about` }, about), node);
}

/** What was written into forms that were left by Escape, by their names. */
const left = new Map();

/** A field with what was written into it before, where it begins with the same. */
function withLeft(field, before) {
  const input = field.input;
  const was = input?.type === 4 && before?.[input.custom_id];
  return was && was.begun === (input.value ?? "") ? { ...field, input: { ...input, value: was.text } } : field;
}

/** Shows a form of an application. What was written stays until it is accepted or cancelled. */
export function openForm(interaction, data) {
  const said = el("p", { class: "error", role: "alert", hidden: true });
  const send = el("button", { type: "submit", class: "button primary" }, word("submit"));
  const fields = inputs(data);
  const texts = fields.filter((it) => it.input?.type === 4).map(({ input }) => input);
  const before = left.get(data.custom_id);
  const keep = () => {
    const values = new FormData(form);
    left.set(data.custom_id, Object.fromEntries(texts.map((input) => [input.custom_id, { begun: input.value ?? "", text: values.get(input.custom_id) }])));
  };
  const forget = () => {
    box.removeEventListener("close", keep);
    left.delete(data.custom_id);
    close();
  };
  const form = el("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      const sent = new FormData(form);
      const named = fields.filter((it) => it.input);
      const values = Object.fromEntries(named.map(({ input }) => [input.custom_id, input.type === 4 ? sent.get(input.custom_id) : sent.getAll(input.custom_id)]));
      send.disabled = true;
      try {
        await act("modal", { user: world.me, interaction, custom_id: data.custom_id, values });
        forget();
      } catch (error) {
        said.textContent = error instanceof Refused ? error.message : String(error);
        said.hidden = false;
      }
      send.disabled = false;
    },
  }, fields.map((it) => withLeft(it, before)).map(entry), said, el("div", { class: "row" },
    el("button", { type: "button", class: "button secondary", onclick: forget }, word("cancel")), send));
  box.addEventListener("close", keep, { once: true });
  present(data.title, form);
  form.querySelector("input, textarea, select")?.focus();
}

/** Asks before something that cannot be undone. */
export function sure(question, excerpt, doIt, onyes) {
  present(question, excerpt && el("blockquote", { class: "excerpt" }, excerpt.slice(0, 200)),
    el("div", { class: "row" },
      el("button", { type: "button", class: "button secondary", onclick: close }, word("cancel")),
      el("button", { type: "button", class: "button danger", "data-testid": "sure", onclick: () => { close(); onyes(); } }, doIt)));
}

/** Shows an image large. */
export function openImage(href, name) {
  present(name, el("img", { src: href, alt: name }), el("div", { class: "row" },
    el("a", { class: "button secondary", href, target: "_blank", rel: "noopener" }, word("open")),
    el("button", { type: "button", class: "button primary", onclick: close }, word("close"))));
  box.classList.add("image");
}

// A click beside it closes it, as Escape does.
box.addEventListener("click", (event) => { if (event.target === box && !box.querySelector("form")) close(); });

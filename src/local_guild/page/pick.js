// Menus: of texts, people, roles or channels, in messages and in dialogs.

import { el } from "./dom.js";
import { nameOf, placeName, world } from "./store.js";
import { word } from "./words.js";

function entries(menu) {
  const people = () => [...world.users.values()].map((it) => ({ label: nameOf(it), value: it.id }));
  const roles = () => [...world.roles.values()].filter((it) => it.name !== "@everyone").map((it) => ({ label: `@${it.name}`, value: it.id }));
  switch (menu.type) {
    case 5: return people();
    case 6: return roles();
    case 7: return [...people(), ...roles()];
    case 8: return [...world.channels.values()].filter((it) => it.type !== 1).map((it) => ({ label: placeName(it), value: it.id }));
    default: return menu.options ?? [];
  }
}

/** A menu as a native one: keyboards, screen readers and phones know it. */
export function pickFrom(menu, props) {
  const many = (menu.max_values ?? 1) > 1;
  const options = entries(menu).map((it) =>
    el("option", { value: it.value, selected: it.default }, [it.emoji?.id ? null : it.emoji?.name, it.label].filter(Boolean).join(" ") + (it.description ? ` · ${it.description}` : "")));
  const first = many ? null : el("option", { value: "", disabled: props.required !== false, selected: !(menu.options ?? []).some((it) => it.default) }, menu.placeholder ?? word("choose"));
  return el("select", { ...props, class: "menu-select", multiple: many, size: many ? Math.min(options.length, 6) : null }, first, options);
}

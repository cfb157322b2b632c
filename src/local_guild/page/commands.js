// Slash commands: what there is, what was written after one, and the fields of its options.

import { act, nonce, Refused, upload } from "./api.js";
import { el, iconButton, toast } from "./dom.js";
import { picture } from "./message.js";
import { nameOf, placeName, world } from "./store.js";
import { spoken, word } from "./words.js";

const place = document.getElementById("command");
const list = document.getElementById("command-choices");

/** Every command as one writes it: one with subcommands once for each of them. */
export function commands() {
  const leaves = (path) => {
    const inner = (path.at(-1).options ?? []).filter((it) => it.type <= 2);
    return inner.length === 0 ? [path] : inner.flatMap((it) => leaves([...path, it]));
  };
  return world.commands.filter((it) => (it.type ?? 1) === 1).flatMap((command) => leaves([command]).map((path) => ({
    path, command,
    bot: world.users.get(command.application_id) ?? { username: "?" },
    options: path.at(-1).options ?? [],
    plain: path.map((it) => it.name).join(" "),
    name: path.map((it) => spoken(it, "name")).join(" "),
    about: spoken(path.at(-1), "description"),
  })));
}

/** The commands that a beginning may mean, in either language or by the name of a subcommand. */
export function commandsFor(part) {
  const begins = (text) => text.toLowerCase().startsWith(part);
  return commands().filter((it) => begins(it.name) || begins(it.plain) || (part && it.path.slice(1).some((one) => begins(one.name) || begins(spoken(one, "name")))));
}

/** The command that a text begins with, and the rest of the text. `null` for an ordinary message. */
export function written(text) {
  if (!text.startsWith("/")) return null;
  const said = text.slice(1);
  const all = commands();
  const spellings = all.flatMap((entry) => [...new Set([entry.plain, entry.name])].map((name) => ({ entry, name })));
  spellings.sort((a, b) => b.name.length - a.name.length);
  const found = spellings.find(({ name }) => said === name || (said.startsWith(name) && /\s/.test(said[name.length])));
  if (found) return { entry: found.entry, rest: said.slice(found.name.length).trim() };
  const first = said.split(/\s/)[0];
  const inner = all.filter((it) => it.path.length > 1 && (it.path[0].name === first || spoken(it.path[0], "name") === first));
  if (inner.length > 0) throw new Refused(word("which", inner.map((it) => `/${it.name}`).join(", ")));
  return null;
}

/** The options in a text: `name:value` pairs, or all of it for the first option. */
export function optionsIn(entry, text) {
  const known = entry.options.filter((it) => it.type !== 11);
  const made = (option, raw) => {
    const value = valueOf(option, raw);
    if (value === undefined) throw new Refused(word("notThat", spoken(option, "name")));
    return { name: option.name, type: option.type, value };
  };
  const begin = known.flatMap((option) => [...new Set([option.name, spoken(option, "name")])].map((name) => ({ option, name: `${name}:` })));
  const at = (from) => begin.find(({ name }) => text.startsWith(name, from));
  // Nothing that was written is left out: what does not begin with a name is all for the first option.
  if (!at(0)) return text && known.length > 0 ? [made(known[0], text)] : [];
  const pairs = [];
  for (let from = 0; from < text.length;) {
    const { option, name } = at(from);
    const rest = text.slice(from + name.length);
    const quoted = /^"([^"]*)"(?=\s|$)/.exec(rest);
    // Up to the next option that has no value yet.
    const ends = [...rest.matchAll(/\s+/g)].map((it) => ({ end: it.index, next: it.index + it[0].length }));
    const isNew = (next) => at(from + name.length + next) && ![option, ...pairs.map((it) => it.option)].includes(at(from + name.length + next).option);
    const next = ends.find((it) => (!quoted || it.end >= quoted[0].length) && isNew(it.next));
    const value = rest.slice(0, next?.end ?? rest.length);
    pairs.push({ option, value: quoted && value.trimEnd() === quoted[0] ? quoted[1] : value });
    from = next ? from + name.length + next.next : text.length;
  }
  return pairs.map(({ option, value }) => made(option, value));
}

/** Sends a command with its options and files; `known` is its nonce. */
export async function run(entry, options, attached, channel, known) {
  const given = [...options];
  const places = entry.options.filter((it) => it.type === 11 && !given.some((one) => one.name === it.name));
  if (attached.length > places.length) throw new Refused(word("tooMany", places.length));
  const missing = entry.options.find((it) => it.required && it.type !== 11 && !given.some((one) => one.name === it.name));
  if (missing) throw new Refused(word("needed", spoken(missing, "name")));
  for (const [at, file] of attached.entries()) given.push({ name: places[at].name, type: 11, value: (await upload(file)).id });
  await act("slash", { user: world.me, channel, command: entry.command.name, options: nested(entry, given), bot: entry.bot.username, nonce: known });
}

const nested = (entry, given) => entry.path.slice(1).reduceRight((inner, it) => [{ name: it.name, type: it.type, options: inner }], given);

/** What an option may be chosen from; `null` where anything may be written. */
function chosenFrom(option) {
  const people = () => [...world.users.values()].map((it) => ({ name: nameOf(it), value: it.id }));
  const roles = () => [...world.roles.values()].filter((it) => it.name !== "@everyone").map((it) => ({ name: `@${it.name}`, value: it.id }));
  switch (option.type) {
    case 5: return [{ name: word("yes"), value: true }, { name: word("no"), value: false }];
    case 6: return people();
    case 7: return [...world.channels.values()].filter((it) => it.type !== 1).map((it) => ({ name: placeName(it), value: it.id }));
    case 8: return roles();
    case 9: return [...people(), ...roles()];
    default: return option.choices?.length ? option.choices.map((it) => ({ name: spoken(it, "name"), value: it.value })) : null;
  }
}

/** What a text means for an option. `undefined` where it means nothing. */
function valueOf(option, raw) {
  const text = raw.trim();
  const all = chosenFrom(option);
  if (all) {
    const same = (it) => [it.name, String(it.value)].some((one) => one.toLowerCase() === text.toLowerCase());
    const other = option.choices?.find((it) => it.name.toLowerCase() === text.toLowerCase());
    return (all.find(same) ?? other)?.value;
  }
  if (option.type === 4 || option.type === 10) {
    const number = Number(text);
    const whole = option.type === 10 || Number.isInteger(number);
    return text && Number.isFinite(number) && whole ? number : undefined;
  }
  return text;
}

/** The form on show: its command, fields, and whom to tell when it ends. */
let form = null;
let choices = [];
let active = 0;
let timer = null;
let turn = 0;
/** The suggestions awaited, and those that came before their request was answered. */
let awaited = null;
const early = new Map();

/** Opens the fields of a command in place of the message box. `onend` is given back what was filled in, as one would
 * write it without the fields, its files and its nonce; nothing where it was sent. */
export function fill(entry, attached, channel, onend) {
  form = { entry, attached, onend, fields: [], channel };
  const hint = el("p", { class: "command-hint", id: "command-hint", role: "status" }, entry.about);
  form.hint = hint;
  form.fields = entry.options.map((option) => field(option));
  place.replaceChildren(
    el("div", { class: "command-head" }, picture(entry.bot), el("strong", { id: "command-name" }, `/${entry.name}`), hint, iconButton("close", word("cancel"), () => end(false))),
    el("div", { class: "command-fields" }, form.fields.map((it) => it.node), iconButton("send", word("send"), submit, { class: "icon-button send", "data-testid": "command-send" })));
  place.hidden = false;
  (form.fields.find((it) => it.option.required) ?? form.fields[0]).input.focus();
}

/** Whether a command is being filled in. */
export const filling = () => form !== null;

/** Closes the fields, as when another channel is opened. */
export function leave() {
  if (form) end(false);
}

function end(sent) {
  const ended = form;
  form = null;
  hush();
  early.clear();
  place.hidden = true;
  place.replaceChildren();
  // What is on its way comes back where it does not arrive.
  ended.onend(sent || ended.sending ? null : filled(ended));
}

/** What stands in the fields of a command. */
function filled({ entry, fields, attached, known }) {
  const given = fields.filter((it) => it.option.type !== 11 && it.input.value.trim());
  const said = (it) => `${spoken(it.option, "name")}:"${String(it.value ?? it.input.value.trim()).replaceAll('"', "”")}"`;
  return {
    text: [`/${entry.name}`, ...given.map(said), ""].join(" "),
    files: [...attached, ...fields.filter((it) => it.option.type === 11).flatMap((it) => [...it.input.files])],
    nonce: known,
  };
}

function field(option) {
  const name = spoken(option, "name");
  const isFile = option.type === 11;
  const listed = !isFile && (option.autocomplete || chosenFrom(option) !== null);
  const made = { option, listed, value: undefined };
  made.input = el("input", {
    type: isFile ? "file" : "text", "data-testid": `option-${option.name}`, "aria-describedby": "command-hint",
    "aria-required": String(Boolean(option.required)), inputmode: option.type === 4 ? "numeric" : option.type === 10 ? "decimal" : null,
    autocomplete: "off", role: listed ? "combobox" : null, "aria-autocomplete": listed ? "list" : null, "aria-controls": listed ? "command-choices" : null, "aria-expanded": listed ? "false" : null,
    onfocus: () => { say(spoken(option, "description")); offer(made); },
    onblur: () => hush(),
    oninput: () => { changed(); made.value = undefined; made.input.removeAttribute("aria-invalid"); offer(made); },
    onkeydown: (event) => key(event, made),
  });
  made.node = el("label", { class: "command-field" }, el("span", {}, name, option.required ? null : el("small", {}, ` ${word("optional")}`)), made.input);
  return made;
}

const say = (text) => { if (form) form.hint.textContent = text; };

function hush() {
  clearTimeout(timer);
  turn += 1;
  awaited = null;
  choices = [];
  list.hidden = true;
  list.replaceChildren();
  for (const it of form?.fields ?? []) {
    it.input.removeAttribute("aria-activedescendant");
    if (it.listed) it.input.setAttribute("aria-expanded", "false");
  }
}

function offer(made) {
  hush();
  if (!made.listed || made.value !== undefined) return;
  const all = chosenFrom(made.option);
  const typed = made.input.value.trim().toLowerCase();
  if (all) {
    show(made, all.filter((it) => it.name.toLowerCase().includes(typed)));
    return;
  }
  timer = setTimeout(() => complete(made).catch(() => say(word("noChoices"))), typed ? 120 : 0);
}

async function complete(made) {
  const mine = turn;
  const { entry, channel } = form;
  const focused = { name: made.option.name, type: made.option.type, value: made.input.value, focused: true };
  const body = { user: world.me, channel, command: entry.command.name, bot: entry.bot.username, options: nested(entry, [...others(made), focused]) };
  const { interaction } = await act("complete", body);
  if (mine !== turn) return;
  awaited = { interaction, made };
  if (early.has(interaction)) suggested({ id: interaction, data: early.get(interaction) });
}

/** Suggestions have come from the application. */
export function suggested({ id, data }) {
  if (awaited?.interaction !== id) {
    if (form) early.set(id, data);
    return;
  }
  const { made } = awaited;
  awaited = null;
  early.clear();
  show(made, data.choices.map((it) => ({ name: spoken(it, "name"), value: it.value })));
  if (data.choices.length === 0) say(word("noChoices"));
}

/** Whether an application that let the time pass was asked for suggestions only. */
export function unanswered(id) {
  if (awaited?.interaction !== id) return false;
  awaited = null;
  say(word("noChoices"));
  return true;
}

function others(made) {
  return form.fields.filter((it) => it !== made && it.option.type !== 11 && it.input.value.trim()).flatMap((it) => {
    const value = it.value ?? valueOf(it.option, it.input.value);
    return value === undefined ? [] : [{ name: it.option.name, type: it.option.type, value }];
  });
}

function show(made, found) {
  choices = found.slice(0, 25);
  active = 0;
  list.hidden = choices.length === 0;
  list.setAttribute("aria-label", spoken(made.option, "name"));
  list.replaceChildren(...choices.map((it, at) => el("li", {
    id: `command-choice-${at}`, role: "option", "data-testid": `value-${it.value}`,
    onmousedown: (event) => { event.preventDefault(); take(made, at); },
  }, el("span", {}, it.name))));
  made.input.setAttribute("aria-expanded", String(choices.length > 0));
  mark(made);
}

function mark(made) {
  [...list.children].forEach((node, at) => node.setAttribute("aria-selected", String(at === active)));
  list.children[active]?.scrollIntoView({ block: "nearest" });
  if (choices.length > 0) made.input.setAttribute("aria-activedescendant", `command-choice-${active}`);
}

/** What is written differently is another command. */
function changed() {
  if (form) form.known = null;
}

function take(made, at) {
  changed();
  made.input.value = choices[at].name;
  made.value = choices[at].value;
  hush();
  const after = form.fields.slice(form.fields.indexOf(made) + 1);
  const next = after.find((it) => it.option.required && !it.input.value) ?? form.fields.find((it) => it.option.required && !it.input.value);
  (next ?? made).input.focus();
}

function key(event, made) {
  if (event.isComposing || event.keyCode === 229) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && choices.length > 0) {
    event.preventDefault();
    active = (active + step + choices.length) % choices.length;
    mark(made);
  } else if ((event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) && choices.length > 0) {
    event.preventDefault();
    take(made, active);
  } else if (event.key === "Enter") {
    event.preventDefault();
    submit();
  } else if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    if (choices.length > 0) hush();
    else end(false);
  }
}

function complain(made, text) {
  made.input.setAttribute("aria-invalid", "true");
  made.input.focus();
  say(text);
}

async function submit() {
  const given = [];
  const files = [...form.attached];
  for (const it of form.fields) {
    const name = spoken(it.option, "name");
    if (it.option.type === 11) {
      files.push(...it.input.files);
      continue;
    }
    const text = it.input.value.trim();
    if (!text) {
      if (it.option.required) return complain(it, word("needed", name));
      continue;
    }
    const value = it.value ?? valueOf(it.option, text);
    if (value === undefined) return complain(it, word("notThat", name));
    const [length, most] = [[...String(value)].length, it.option.max_length ?? 6000];
    if (it.option.type === 3 && length > most) return complain(it, word("tooLong", length, most));
    given.push({ name: it.option.name, type: it.option.type, value });
  }
  const mine = form;
  if (mine.sending) return undefined;
  mine.sending = true;
  mine.known ??= nonce();
  try {
    await run(mine.entry, given, files, mine.channel, mine.known);
    if (form === mine) end(true);
  } catch (error) {
    // What was refused has not been taken.
    if (error instanceof Refused) mine.known = null;
    if (form !== mine) mine.onend(filled(mine));
    toast(error instanceof Refused ? error.message : String(error));
  } finally {
    mine.sending = false;
  }
  return undefined;
}

// One message as a node: author, text, embeds, files, buttons, reactions.

import { act, post, Refused } from "./api.js";
import { openImage, sure } from "./dialog.js";
import { avatar, clockTime, el, fullTime, icon, iconButton, safeUrl, timeOf, toast } from "./dom.js";
import { inline, markdown } from "./markdown.js";
import { messageMenu, offers, personMenu } from "./menu.js";
import { pickFrom } from "./pick.js";
import { dismiss, LOADING, nameOf, tint, touch, world } from "./store.js";
import { word } from "./words.js";

const EPHEMERAL = 1 << 6;
const quick = ["👍", "✅", "👀", "🎉", "❓"];

const complain = (error) => toast(error instanceof Refused ? error.message : String(error));

/** The round picture of an author. */
export function picture(author) {
  const src = author.avatar ? `/avatars/${author.id}/${author.avatar}.png` : null;
  return avatar(nameOf(author), tint(author), src);
}

function byline(message) {
  const { author } = message;
  const name = el("span", { class: "author" }, nameOf(author));
  name.style.setProperty("--tint", tint(author));
  return el("div", { class: "byline" }, name,
    author.bot && el("span", { class: "tag" }, word("app")),
    el("time", { datetime: message.timestamp, title: fullTime(timeOf(message.id)) }, clockTime(timeOf(message.id))));
}

function reference(message) {
  const used = message.interaction_metadata;
  if (used?.type === 2) {
    const sign = (used.command_type ?? 1) === 1 ? "/" : "";
    return el("p", { class: "reference" }, word("used", nameOf(used.user), `${sign}${used.name ?? ""}`));
  }
  if (!message.message_reference || message.type === 6) return null;
  const to = message.referenced_message;
  if (!to) return el("p", { class: "reference" }, word("gone"));
  const text = to.content || to.embeds?.[0]?.title || to.embeds?.[0]?.description || to.attachments?.[0]?.filename || "…";
  const name = el("span", { class: "author" }, nameOf(to.author));
  name.style.setProperty("--tint", tint(to.author));
  return el("p", { class: "reference" },
    el("button", { type: "button", onclick: () => touch("show", to.id) }, icon("reply"), name, el("span", { class: "excerpt" }, inline(text.split("\n")[0].slice(0, 120)))));
}

function embed(data) {
  const title = data.title && el("h3", {}, data.url && safeUrl(data.url) ? el("a", { href: safeUrl(data.url), target: "_blank", rel: "noopener noreferrer" }, inline(data.title)) : inline(data.title));
  const fields = (data.fields ?? []).map((field) =>
    el("div", { class: field.inline ? "field inline" : "field" }, el("dt", {}, inline(field.name)), el("dd", {}, markdown(field.value))));
  const image = data.image?.url && safeUrl(data.image.url)?.startsWith(location.origin) ? el("img", { src: safeUrl(data.image.url), alt: "" }) : null;
  const foot = [data.footer?.text, data.timestamp && fullTime(Date.parse(data.timestamp))].filter(Boolean).join(" · ");
  const node = el("article", { class: "embed" },
    data.author?.name && el("p", { class: "embed-author" }, data.author.name), title,
    data.description && el("div", { class: "prose" }, markdown(data.description)),
    fields.length > 0 && el("dl", { class: "fields" }, fields), image,
    foot && el("p", { class: "embed-foot" }, foot));
  if (data.color) node.style.setProperty("--bar", `#${data.color.toString(16).padStart(6, "0")}`);
  return node;
}

function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

/** The name that a file was sent with: in its own name, letters that are not English are underscores. */
function fileName({ title, filename }) {
  if (!title) return filename;
  const ending = filename.lastIndexOf(".");
  return ending < 0 ? title : `${title}${filename.slice(ending)}`;
}

function attachment(file) {
  const href = new URL(file.url, location.href).pathname;
  if (/^image\/(png|jpeg|gif|webp)/.test(file.content_type ?? "")) {
    const image = el("img", { src: href, alt: file.description ?? fileName(file), loading: "lazy", width: file.width, height: file.height });
    return el("a", { class: "picture", href, onclick: (event) => { event.preventDefault(); openImage(href, fileName(file)); } }, image);
  }
  return el("a", { class: "file", href, download: fileName(file) }, icon("file"),
    el("span", { class: "file-name" }, fileName(file)), el("span", { class: "file-size" }, size(file.size)));
}

async function press(message, component, values) {
  const key = `${message.id}:${component.custom_id}`;
  if (world.waiting.has(key)) return;
  world.waiting.add(key);
  touch("log", message.channel_id);
  try {
    const { interaction } = await act("click", { user: world.me, channel: message.channel_id, message: message.id, custom_id: component.custom_id, values });
    touch("clicked", { interaction, key });
  } catch (error) {
    world.waiting.delete(key);
    touch("log", message.channel_id);
    complain(error);
  }
}

const styles = { 1: "primary", 2: "secondary", 3: "success", 4: "danger" };

function component(message, data) {
  if (data.type === 2 && data.style === 5) {
    const href = safeUrl(data.url);
    return el("a", { class: "button link", href, target: "_blank", rel: "noopener noreferrer" }, data.label ?? word("open"), " ↗");
  }
  const busy = world.waiting.has(`${message.id}:${data.custom_id}`);
  if (data.type === 2) {
    return el("button", {
      type: "button", class: `button ${styles[data.style] ?? "secondary"}${busy ? " busy" : ""}`, disabled: data.disabled, "aria-busy": busy ? "true" : null,
      "data-testid": `button-${data.custom_id}`, onclick: () => press(message, data),
    }, data.emoji?.name && !data.emoji.id ? `${data.emoji.name} ` : "", data.label ?? "");
  }
  if (data.type === 3 || (data.type >= 5 && data.type <= 8)) {
    const shared = { disabled: data.disabled || busy, "aria-label": data.placeholder ?? word("choose"), "data-testid": `menu-${data.custom_id}` };
    if ((data.max_values ?? 1) === 1) return pickFrom(data, { ...shared, onchange: (event) => press(message, data, [event.target.value]) });
    const chosen = (button) => [...button.parentElement.querySelector("select").selectedOptions].map((it) => it.value);
    const send = (event) => press(message, data, chosen(event.currentTarget));
    return el("span", { class: "many" }, pickFrom(data, shared), el("button", { type: "button", class: "button secondary", disabled: shared.disabled, onclick: send }, word("submit")));
  }
  return null;
}

function reactions(message) {
  if (!message.reactions?.length) return null;
  return el("div", { class: "reactions" }, message.reactions.map((it) =>
    el("button", { type: "button", class: it.me ? "reaction mine" : "reaction", "aria-pressed": String(it.me), "aria-label": word("reactions", it.emoji.name, it.count), onclick: () => react(message, it.emoji.name, !it.me) },
      it.emoji.name, el("span", {}, String(it.count)))));
}

const react = (message, emoji, on) =>
  post("react", { user: world.me, channel: message.channel_id, message: message.id, emoji, on }).catch(complain);

function toolbar(message) {
  const mine = message.author.id === world.me;
  if (message.flags & EPHEMERAL) return null;
  const remove = () => sure(word("removeSure"), message.content, word("remove"), () =>
    post("delete", { user: world.me, channel: message.channel_id, message: message.id }).catch(complain));
  const palette = el("span", { class: "palette", hidden: true, "data-own": "hidden" }, quick.map((emoji) => el("button", { type: "button", class: "icon-button", "aria-label": `${word("react")} ${emoji}`, onclick: () => react(message, emoji, true) }, emoji)));
  return el("div", { class: "toolbar", role: "group", "aria-label": word("tools") }, palette,
    iconButton("smile", word("react"), (event) => event.currentTarget.parentElement.querySelector(".palette").toggleAttribute("hidden")),
    iconButton("reply", word("reply"), () => touch("reply", message)),
    mine && iconButton("edit", word("edit"), () => touch("edit", message)),
    (mine || world.guild.owner_id === world.me) && iconButton("remove", word("remove"), remove),
    offers() && iconButton("dots", word("apps"), (event) => messageMenu(event, message), { "aria-haspopup": "menu", "data-testid": "apps" }));
}

/** A click with the other button: on the author a menu for them, elsewhere one for the message. */
function context(event, message) {
  if (event.shiftKey || message.flags & EPHEMERAL) return;
  if (event.target.closest(".byline .author, .gutter .avatar")) personMenu(event, message.author);
  if (event.defaultPrevented || event.target.closest("a, img, input, select")) return;
  messageMenu(event, message);
}

function threadChip(message) {
  const thread = world.channels.get(message.id);
  if (!thread || thread.parent_id !== message.channel_id) return null;
  return el("a", { class: "thread-chip", href: `#${thread.id}`, "data-testid": `open-${thread.id}` }, icon("thread"),
    el("strong", {}, thread.name), el("span", {}, word("messages", thread.message_count)));
}

function system(message) {
  const name = nameOf(message.author);
  const room = message.message_reference?.channel_id;
  const [before, after] = word("opened", name);
  const text = message.type === 6 ? [word("pinned", name)]
    : [before, el("a", { href: `#${room}` }, message.content), after];
  return el("li", { class: "message system", "data-id": message.id }, icon(message.type === 6 ? "pin" : "thread"),
    el("p", {}, text, " ", el("time", { datetime: message.timestamp }, clockTime(timeOf(message.id)))));
}

/** What besides the message itself a node depends on: as long as it is equal, the node is kept. */
export function dependsOn(message) {
  const thread = world.channels.get(message.id);
  const busy = [...world.waiting].filter((key) => key.startsWith(`${message.id}:`)).join();
  return `${thread ? `${thread.name}/${thread.message_count}` : ""}|${busy}|${offers()}`;
}

/** The node of a message. `compact` leaves out the author: the one before is by the same. */
export function messageNode(message, compact) {
  try {
    return whole(message, compact);
  } catch (error) {
    // One that cannot be drawn hides no other.
    console.error(message.id, error);
    return el("li", { class: "message", "data-testid": "message", "data-id": message.id }, el("p", {}, word("unreadable")));
  }
}

function whole(message, compact) {
  if (message.type === 6 || message.type === 18) return system(message);
  const loading = (message.flags & LOADING) !== 0 && !message.content && !message.embeds.length;
  const body = el("div", { class: "prose" }, loading ? el("p", { class: "loading" }, word("thinking")) : markdown(message.content));
  // An answer that was promised first is filled in, not edited.
  const edited = message.edited_timestamp && message.content && message.type !== 20 && !(message.flags & EPHEMERAL);
  if (edited) (body.querySelector(":scope > p:last-child") ?? body).append(" ", el("span", { class: "edited", title: fullTime(Date.parse(message.edited_timestamp)) }, word("edited")));
  const rows = message.components.map((row) => el("div", { class: "row" }, row.components.map((it) => component(message, it))));
  // A reply counts as a mention for the badge, but only a name in the text colours the message.
  const mentioned = message.author.id !== world.me && message.mentions.some((it) => it.id === world.me && message.content.includes(it.id));
  const classes = ["message", compact && "compact", mentioned && "mentioned", message.flags & EPHEMERAL && "private"].filter(Boolean).join(" ");
  return el("li", { class: classes, "data-testid": "message", "data-author": nameOf(message.author), "data-id": message.id, oncontextmenu: (event) => context(event, message) },
    compact ? null : reference(message),
    el("div", { class: "gutter" }, compact ? el("time", { class: "aside", datetime: message.timestamp }, clockTime(timeOf(message.id))) : picture(message.author)),
    el("div", { class: "body" }, compact ? el("span", { class: "hidden" }, nameOf(message.author)) : byline(message), body,
      message.attachments.length > 0 && el("div", { class: "attachments" }, message.attachments.map(attachment)),
      message.embeds.map(embed), rows, reactions(message), threadChip(message),
      message.flags & EPHEMERAL ? el("p", { class: "only-you" }, word("onlyYou"), " · ", el("button", { type: "button", class: "plain", "data-testid": "dismiss", onclick: () => dismiss(message) }, word("dismiss"))) : null),
    toolbar(message));
}

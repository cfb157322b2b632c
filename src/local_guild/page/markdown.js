// Discord's flavour of Markdown, built as nodes.

import { el, safeUrl, stamp } from "./dom.js";
import { nameOf, placeName, world } from "./store.js";

const inlineRules = [
  [/^\\([^\w\s])/, (m) => m[1]],
  [/^(`+)([\s\S]*?[^`])\1(?!`)/, (m) => el("code", {}, m[2].replace(/^ (.*) $/s, "$1"))],
  [/^\*\*\*(?=\S)([\s\S]*?\S)\*\*\*/, (m) => el("strong", {}, el("em", {}, inline(m[1])))],
  [/^\*\*(?=\S)([\s\S]*?\S)\*\*(?!\*)/, (m) => el("strong", {}, inline(m[1]))],
  [/^__(?=\S)([\s\S]*?\S)__/, (m) => el("u", {}, inline(m[1]))],
  [/^\*(?=[^\s*])([\s\S]*?[^\s*])\*(?!\*)/, (m) => el("em", {}, inline(m[1]))],
  [/^_(?=\S)([^_]*\S)_(?!\w)/, (m) => el("em", {}, inline(m[1])), true],
  [/^~~(?=\S)([\s\S]*?\S)~~/, (m) => el("s", {}, inline(m[1]))],
  [/^\|\|([\s\S]+?)\|\|/, (m) => el("button", { type: "button", class: "spoiler", "aria-expanded": "false", "data-own": "aria-expanded", onclick: (e) => e.currentTarget.setAttribute("aria-expanded", "true") }, inline(m[1]))],
  [/^\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/, (m) => link(m[2], inline(m[1]))],
  [/^<(https?:\/\/[^\s>]+)>/, (m) => link(m[1], [m[1]])],
  [/^https?:\/\/[^\s<]*[^\s<.,:;"')\]!?*]/, (m) => link(m[0], [m[0]])],
  [/^<@!?(\d+)>/, (m) => mention("@" + (world.users.has(m[1]) ? nameOf(world.users.get(m[1])) : "?"), m[1] === world.me)],
  [/^<@&(\d+)>/, (m) => mention("@" + (world.roles.get(m[1])?.name ?? "?"), false, world.roles.get(m[1])?.color)],
  [/^<#(\d+)>/, (m) => el("a", { class: "mention", href: `#${m[1]}` }, placeName(world.channels.get(m[1])) || "#?")],
  [/^<t:(-?\d+)(?::(\w))?>/, (m) => stamp(Number(m[1]) * 1000, m[2])],
  [/^<a?:(\w+):\d+>/, (m) => `:${m[1]}:`],
  [/^@(everyone|here)\b/, (m) => mention(m[0], true)],
];

function mention(text, self, color) {
  const node = el("span", { class: self ? "mention self" : "mention" }, text);
  if (color) node.style.setProperty("--tint", `#${color.toString(16).padStart(6, "0")}`);
  return node;
}

function link(target, children) {
  const href = safeUrl(target);
  return href ? el("a", { href, target: "_blank", rel: "noopener noreferrer" }, children) : el("span", {}, children);
}

/** The nodes of one run of text. */
export function inline(text) {
  const nodes = [];
  let plain = "";
  const flush = () => {
    const lines = plain.split("\n");
    lines.forEach((line, at) => {
      if (at > 0) nodes.push(el("br"));
      if (line) nodes.push(line);
    });
    plain = "";
  };
  let at = 0;
  outer: while (at < text.length) {
    if (/[\\`*_~|[<h@]/.test(text[at])) {
      const rest = text.slice(at);
      const inWord = at > 0 && /\w/.test(text[at - 1]);
      for (const [rule, make, atEdge] of inlineRules) {
        if (inWord && (atEdge || text[at] === "h")) continue;
        const found = rule.exec(rest);
        if (!found) continue;
        const made = make(found);
        if (typeof made === "string") plain += made;
        else { flush(); nodes.push(made); }
        at += found[0].length;
        continue outer;
      }
    }
    plain += text[at];
    at += 1;
  }
  flush();
  return nodes;
}

/** The lines of a difference: what came and what went stands out, and says so by its sign too. */
function changes(text) {
  const kinds = { "+": "came", "-": "went", "@": "where" };
  return text.split("\n").map((line) => el("span", { class: kinds[line[0]] }, `${line}\n`));
}

const fence = /^```(?:([\w+#.-]*)\n)?([\s\S]*?)\n?```/;

function list(lines) {
  // Depth by indent: each level is a list of its own inside the item before.
  const root = el(/^\s*\d+[.)]/.test(lines[0]) ? "ol" : "ul");
  const stack = [{ indent: 0, node: root }];
  for (const line of lines) {
    const entry = /^(\s*)([-*+]|\d+[.)]) (.*)$/s.exec(line);
    if (!entry) continue;
    const [, space, mark, text] = entry;
    while (stack.length > 1 && space.length < stack.at(-1).indent) stack.pop();
    if (space.length > stack.at(-1).indent + 1 && stack.at(-1).node.lastElementChild) {
      const inner = el(/\d/.test(mark) ? "ol" : "ul");
      stack.at(-1).node.lastElementChild.append(inner);
      stack.push({ indent: space.length, node: inner });
    }
    const number = /\d/.test(mark) ? Number.parseInt(mark, 10) : undefined;
    const task = /^\[([ xX])\] /.exec(text);
    stack.at(-1).node.append(el("li", { value: number }, task ? [task[1] === " " ? "☐ " : "☑ ", ...inline(text.slice(4))] : inline(text)));
  }
  return root;
}

/** The nodes of a whole text. */
export function markdown(text) {
  const nodes = [];
  let rest = text.replace(/\r/g, "");
  const paragraph = [];
  const flush = () => {
    const body = paragraph.splice(0).join("\n").replace(/^\n+|\n+$/g, "");
    if (body) nodes.push(el("p", {}, inline(body)));
  };
  while (rest) {
    const code = fence.exec(rest);
    if (code) {
      flush();
      nodes.push(el("pre", { tabindex: "0" }, el("code", { "data-language": code[1] }, code[1] === "diff" ? changes(code[2]) : code[2])));
      rest = rest.slice(code[0].length).replace(/^\n/, "");
      continue;
    }
    const end = rest.indexOf("\n");
    let line = end < 0 ? rest : rest.slice(0, end);
    const heading = /^(#{1,3}) (.+)$/.exec(line);
    const small = /^-# (.+)$/.exec(line);
    if (heading) {
      flush();
      nodes.push(el(`h${heading[1].length + 2}`, {}, inline(heading[2])));
    } else if (small) {
      flush();
      nodes.push(el("small", {}, inline(small[1])));
    } else if (/^>>> /.test(line)) {
      flush();
      nodes.push(el("blockquote", {}, markdown(rest.slice(4))));
      return nodes;
    } else if (/^> ?/.test(line) && line !== ">") {
      flush();
      const quoted = /^(?:> ?[^\n]*(?:\n|$))+/.exec(rest)[0];
      nodes.push(el("blockquote", {}, markdown(quoted.replace(/^> ?/gm, "").replace(/\n$/, ""))));
      rest = rest.slice(quoted.length);
      continue;
    } else if (/^[ \t]{0,6}([-*+]|\d+[.)]) \S/.test(line)) {
      flush();
      const items = /^(?:[ \t]{0,6}(?:[-*+]|\d+[.)]) [^\n]*(?:\n|$))+/.exec(rest)[0];
      nodes.push(list(items.replace(/\n$/, "").split("\n")));
      rest = rest.slice(items.length);
      continue;
    } else {
      const inside = line.indexOf("```");
      if (inside > 0 && fence.test(rest.slice(inside))) {
        paragraph.push(line.slice(0, inside));
        rest = rest.slice(inside);
        continue;
      }
      paragraph.push(line);
    }
    rest = end < 0 ? "" : rest.slice(end + 1);
  }
  flush();
  return nodes;
}

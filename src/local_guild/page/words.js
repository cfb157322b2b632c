// The page's own words, in English and Korean. What people and bots write is never translated.

const en = {
  skip: "Skip to the message box", channels: "Channels", rooms: "Rooms", direct: "Direct messages",
  speakAs: "Speak as", theme: "Switch light and dark", menu: "Show channels", attach: "Attach files",
  send: "Send", message: (place) => `Message ${place}`, typing1: (a) => `${a} is typing…`,
  typing2: (a, b) => `${a} and ${b} are typing…`, typingMany: "Several people are typing…",
  app: "APP", edited: "(edited)", room: "Room", today: "Today", yesterday: "Yesterday",
  jump: "Jump to the newest message", newMarker: "New", reply: "Reply", react: "React", edit: "Edit",
  remove: "Delete", removeSure: "Delete this message?", cancel: "Cancel", submit: "Submit",
  replying: (a) => `Replying to ${a}`, editing: "Editing your message. Escape cancels.",
  locked: "This page needs its key: open the whole address that the terminal shows.",
  offline: "The connection is gone. Trying again…", failed: "The app did not answer in time.",
  thinking: "is working on it…", gone: "The message it answers is gone.", onlyYou: "Only you can see this",
  hint: "Write @teams and what you need. Type @ to see whom you can address.",
  hintDirect: "Write what you need.",
  start: (place) => `This is where ${place} begins.`, pinned: (a) => `${a} pinned a message.`,
  opened: (a) => [`${a} opened the room `, ""], messages: (n) => n === 1 ? "1 message" : `${n} messages`,
  used: (a, name) => `${a} used ${name}`, unread: "unread", removeFile: (name) => `Remove ${name}`,
  open: "Open", choose: "Choose…", tooBig: "This file is larger than 20 MiB.",
  from: "in", mentions: "People and roles", commands: "Commands", which: (all) => `Which one: ${all}?`,
  needed: (name) => `“${name}” is missing.`, notThat: (name) => `“${name}” takes something else. Choose from the list.`,
  optional: "optional", yes: "yes", no: "no", noChoices: "There is nothing to choose here now.", close: "Close", dismiss: "Dismiss",
  reactions: (emoji, n) => `${emoji}, ${n}`, tools: "Actions", language: "한국어로 보기", other: "KO", said: (a, text) => `${a}: ${text}`, log: "Messages",
  tooLong: (n, most) => `This has ${n} characters, and ${most} fit. Shorten it, or attach it as a file.`,
  unreadable: "This message cannot be shown.",
  apps: "Apps", onMessage: "For this message", onPerson: (name) => `For ${name}`,
  tooOld: "That message is too far back.", tooMany: (n) => n === 0 ? "This command takes no files." : `This command takes ${n} files at most.`,
};

const ko = {
  skip: "메시지 입력란으로 건너뛰기", channels: "채널", rooms: "방", direct: "다이렉트 메시지",
  speakAs: "말하는 사람", theme: "밝은 화면과 어두운 화면 전환", menu: "채널 보기", attach: "파일 첨부",
  send: "보내기", message: (place) => `${place}에 메시지 보내기`, typing1: (a) => `${a} 님이 입력하고 있어요…`,
  typing2: (a, b) => `${a} 님과 ${b} 님이 입력하고 있어요…`, typingMany: "여러 명이 입력하고 있어요…",
  app: "앱", edited: "(수정됨)", room: "방", today: "오늘", yesterday: "어제",
  jump: "최신 메시지로 이동", newMarker: "새 메시지", reply: "답장", react: "반응", edit: "수정",
  remove: "삭제", removeSure: "이 메시지를 삭제할까요?", cancel: "취소", submit: "제출",
  replying: (a) => `${a} 님에게 답장`, editing: "메시지를 수정하는 중이에요. Esc를 누르면 취소돼요.",
  locked: "키가 필요해요. 터미널에 나온 주소 전체로 열어 주세요.",
  offline: "연결이 끊겼어요. 다시 연결하고 있어요…", failed: "앱이 제때 응답하지 않았어요.",
  thinking: "작업하고 있어요…", gone: "원래 메시지가 없어졌어요.", onlyYou: "나에게만 보여요",
  hint: "@teams 다음에 필요한 것을 적어 보세요. @를 입력하면 부를 수 있는 이름이 나와요.",
  hintDirect: "필요한 것을 적어 보세요.",
  start: (place) => `${place}의 시작이에요.`, pinned: (a) => `${a} 님이 메시지를 고정했어요.`,
  opened: (a) => [`${a} 님이 `, " 방을 열었어요"], messages: (n) => `메시지 ${n}개`,
  used: (a, name) => `${a} 님이 ${name} 사용`, unread: "읽지 않음", removeFile: (name) => `${name} 빼기`,
  open: "열기", choose: "선택…", tooBig: "20MiB보다 큰 파일이에요.",
  from: "위치:", mentions: "사람과 역할", commands: "명령어", which: (all) => `어느 것인가요: ${all}`,
  needed: (name) => `“${name}” 값이 필요해요.`, notThat: (name) => `“${name}”에 쓸 수 없는 값이에요. 목록에서 골라 주세요.`,
  optional: "선택", yes: "예", no: "아니요", noChoices: "지금은 고를 것이 없어요.", close: "닫기", dismiss: "지우기",
  reactions: (emoji, n) => `${emoji}, ${n}`, tools: "할 수 있는 일", language: "Show in English", other: "EN", said: (a, text) => `${a}: ${text}`, log: "메시지",
  tooLong: (n, most) => `${n}자예요. ${most}자까지 보낼 수 있으니 줄이거나 파일로 첨부해 주세요.`,
  unreadable: "보여 드릴 수 없는 메시지예요.",
  apps: "앱 메뉴", onMessage: "이 메시지에", onPerson: (name) => `${name} 님에게`,
  tooOld: "그 메시지는 너무 오래되었어요.", tooMany: (n) => n === 0 ? "이 명령어는 파일을 받지 않아요." : `이 명령어는 파일을 ${n}개까지 받아요.`,
};

const wished = localStorage.getItem("language") ?? navigator.language;

/** The language of the page: as chosen on it, else the browser's. */
export const language = wished.toLowerCase().startsWith("ko") ? "ko" : "en";

/** The same as apps are told it. */
export const locale = language === "ko" ? "ko" : "en-US";

/** A name or description in the language of the page, where its app brought one. */
export const spoken = (thing, key) => thing[`${key}_localizations`]?.[locale] ?? thing[key];

/** Changes the language for good. */
export function switchLanguage() {
  localStorage.setItem("language", language === "ko" ? "en" : "ko");
  location.reload();
}
const words = language === "ko" ? ko : en;

/** A word or, with arguments, a sentence. */
export function word(key, ...parts) {
  const found = words[key] ?? en[key] ?? key;
  return typeof found === "function" ? found(...parts) : found;
}

// An unmodified discord.js client: each step asserts on what the client's own objects say and prints
// one line. The person is played by tests/it/other_clients.rs, which reads those lines.
"use strict";

const assert = require("node:assert/strict");
const {
  ActionRowBuilder, ButtonBuilder, ButtonStyle, Client, Events, GatewayIntentBits, ModalBuilder, Partials,
  TextInputBuilder, TextInputStyle,
} = require("discord.js");

const { TEAMS_BASE, TEAMS_TOKEN, TEAMS_GUILD, TEAMS_CHANNEL } = process.env;

const client = new Client({
  intents: [
    GatewayIntentBits.Guilds, GatewayIntentBits.GuildMessages, GatewayIntentBits.MessageContent,
    GatewayIntentBits.GuildMessageReactions, GatewayIntentBits.GuildWebhooks,
  ],
  partials: [Partials.Message, Partials.Reaction],
  rest: { api: `${TEAMS_BASE}/api`, version: "10" },
});

const step = (...words) => console.log(words.join(" "));

/** The next event of a name that fits; listens before anything is sent. */
function next(event, fits) {
  return new Promise((resolve) => {
    const listen = (...args) => {
      if (!fits(...args)) return;
      client.off(event, listen);
      resolve(args);
    };
    client.on(event, listen);
  });
}

/** Starts listening, acts, and waits for both. */
async function acts(event, fits, act) {
  const heard = next(event, fits);
  const made = await act();
  return [made, await heard];
}

async function messages(channel) {
  const [sent, [event]] = await acts(
    Events.MessageCreate, (it) => it.content === "hello", () => channel.send("hello"),
  );
  assert.equal(event.id, sent.id);
  assert.equal(sent.author.id, client.user.id);
  assert.ok(sent.author.bot && sent.member !== null);
  step("send", sent.content);

  const [edited, [before, after]] = await acts(
    Events.MessageUpdate, (_, it) => it.id === sent.id, () => sent.edit("hello again"),
  );
  assert.equal(before.id, after.id);
  assert.ok(edited.editedTimestamp >= sent.createdTimestamp);
  step("edit", after.content);

  const [, [reaction, user]] = await acts(
    Events.MessageReactionAdd, (it) => it.message.id === sent.id, () => sent.react("✅"),
  );
  assert.equal(user.id, client.user.id);
  assert.equal((await sent.fetch(true)).reactions.cache.get("✅").count, 1);
  step("react", reaction.emoji.name);

  const [thread, [created]] = await acts(
    Events.ThreadCreate, () => true, () => sent.startThread({ name: "room" }),
  );
  assert.equal(thread.id, created.id);
  assert.equal(thread.parentId, channel.id);
  assert.equal((await thread.send("inside")).channelId, thread.id);
  assert.ok((await thread.setArchived(true)).archived);
  step("thread", thread.name);

  const extra = await channel.send("gone soon");
  const [, [deleted]] = await acts(
    Events.MessageDelete, (it) => it.id === extra.id, () => extra.delete(),
  );
  assert.equal(deleted.content, "gone soon");
  await assert.rejects(channel.messages.fetch({ message: extra.id, force: true }), { code: 10008 });
  step("delete", deleted.content);

  const filed = await channel.send({ files: [{ attachment: Buffer.from("bytes"), name: "a.txt" }] });
  const file = filed.attachments.first();
  assert.equal(file.size, 5);
  assert.equal(await (await fetch(file.url)).text(), "bytes");
  step("upload", file.name);
}

async function webhook(channel) {
  const hook = await channel.createWebhook({ name: "voices" });
  assert.equal(hook.applicationId, client.application.id);
  const [said, [event]] = await acts(
    Events.MessageCreate, (it) => it.webhookId === hook.id,
    () => hook.send({ content: "a plan", username: "Planner" }),
  );
  assert.equal(said.id, event.id);
  assert.equal((await hook.editMessage(said, "a better plan")).content, "a better plan");
  step("webhook", event.author.username);
}

async function run(interaction) {
  assert.ok(interaction.isChatInputCommand());
  const button = new ButtonBuilder().setCustomId("go").setLabel("Go").setStyle(ButtonStyle.Success);
  const goal = interaction.options.getString("goal", true);
  const response = await interaction.reply({
    content: `planning ${goal}`, components: [new ActionRowBuilder().addComponents(button)], withResponse: true,
  });
  assert.equal(response.resource.message.content, `planning ${goal}`);
  assert.equal(response.resource.message.interactionMetadata.user.id, interaction.user.id);
  assert.ok(interaction.memberPermissions.has("SendMessages"));
  step("run", interaction.commandName, goal, interaction.user.username);
}

async function press(interaction) {
  assert.ok(interaction.isButton());
  assert.equal(interaction.message.author.id, client.user.id);
  const input = new TextInputBuilder().setCustomId("why").setLabel("Why?").setStyle(TextInputStyle.Short);
  const modal = new ModalBuilder().setCustomId("reason").setTitle("A reason")
    .addComponents(new ActionRowBuilder().addComponents(input));
  await interaction.showModal(modal);
  step("press", interaction.customId, interaction.user.username);
}

async function submit(interaction) {
  assert.ok(interaction.isModalSubmit() && interaction.isFromMessage());
  const why = interaction.fields.getTextInputValue("why");
  await interaction.deferUpdate();
  const changed = await interaction.editReply({ content: `because ${why}`, components: [] });
  assert.equal(changed.id, interaction.message.id);
  assert.equal(changed.components.length, 0);
  const more = await interaction.followUp({ content: "only for you", ephemeral: true });
  assert.ok(more.flags.has("Ephemeral"));
  step("modal", interaction.customId, why);
}

async function main() {
  const ready = next(Events.ClientReady, () => true);
  await client.login(TEAMS_TOKEN);
  await ready;
  const guild = client.guilds.cache.get(TEAMS_GUILD);
  assert.ok(guild.available && guild.members.me !== null);
  const channel = guild.channels.cache.get(TEAMS_CHANNEL);
  step("login", client.user.username, channel.name);

  await messages(channel);
  await webhook(channel);

  const interactions = [];
  let wake = () => {};
  client.on(Events.InteractionCreate, (it) => { interactions.push(it); wake(); });
  const asked = async () => {
    while (interactions.length === 0) await new Promise((resolve) => { wake = resolve; });
    return interactions.shift();
  };
  const goal = { type: 3, name: "goal", description: "What for", required: true };
  const command = { name: "plan", description: "Makes a plan", options: [goal] };
  const registered = await guild.commands.set([command]);
  assert.equal(registered.first().options[0].name, "goal");
  assert.equal((await guild.commands.fetch()).size, 1);
  step("register", registered.first().name);
  await run(await asked());
  await press(await asked());
  const said = next(Events.MessageCreate, (it) => !it.author.bot);
  await submit(await asked());
  const [message] = await said;
  assert.equal(message.member.id, message.author.id);
  step("hear", message.content);
  await client.destroy();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

"""An unmodified discord.py client: each step asserts on what the client's own objects say and prints
one line. The person is played by tests/it/other_clients.rs, which reads those lines."""

import asyncio
import io
import os
import sys

import discord
import yarl
from discord import app_commands

BASE = os.environ["TEAMS_BASE"]
GUILD = int(os.environ["TEAMS_GUILD"])
CHANNEL = int(os.environ["TEAMS_CHANNEL"])

# Where the platform is; the library has no option for it.
discord.http.Route.BASE = f"{BASE}/api/v10"
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["TEAMS_GATEWAY"])


def step(*words: str) -> None:
    print(*words, flush=True)


class Reason(discord.ui.Modal, title="A reason"):
    why = discord.ui.TextInput(label="Why?", custom_id="why")

    def __init__(self, done: "asyncio.Future[None]") -> None:
        super().__init__(custom_id="reason")
        self.done = done

    async def on_submit(self, interaction: discord.Interaction) -> None:
        assert interaction.type is discord.InteractionType.modal_submit
        await interaction.response.defer()
        changed = await interaction.edit_original_response(content=f"because {self.why.value}", view=None)
        assert interaction.message is not None and changed.id == interaction.message.id
        assert changed.components == []
        more = await interaction.followup.send("only for you", ephemeral=True, wait=True)
        assert more.flags.ephemeral
        step("modal", "reason", self.why.value)
        self.done.set_result(None)


class Buttons(discord.ui.View):
    def __init__(self, done: "asyncio.Future[None]") -> None:
        super().__init__(timeout=None)
        self.done = done

    @discord.ui.button(label="Go", custom_id="go", style=discord.ButtonStyle.success)
    async def go(self, interaction: discord.Interaction, button: discord.ui.Button) -> None:
        assert interaction.message is not None and interaction.message.author == interaction.client.user
        await interaction.response.send_modal(Reason(self.done))
        step("press", button.custom_id or "", interaction.user.name)


class Client(discord.Client):
    def __init__(self) -> None:
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents)
        self.tree = app_commands.CommandTree(self)
        self.failure: BaseException | None = None

    async def setup_hook(self) -> None:
        self.story = asyncio.create_task(self.tell())

    async def on_error(self, event: str, *args: object, **kwargs: object) -> None:
        self.failure = sys.exc_info()[1]
        await self.close()

    async def tell(self) -> None:
        try:
            await self.wait_until_ready()
            await self.steps()
        except BaseException as error:
            self.failure = error
        await self.close()

    async def acts(self, event, fits, act):
        """Starts listening, acts, and waits for both."""
        heard = asyncio.create_task(self.wait_for(event, check=fits, timeout=20))
        await asyncio.sleep(0)
        made = await act
        return made, await heard

    async def messages(self, channel: discord.TextChannel) -> None:
        sent, event = await self.acts("message", lambda it: it.content == "hello", channel.send("hello"))
        assert event.id == sent.id and sent.author == self.user and sent.author.bot
        step("send", sent.content)

        edited, (before, after) = await self.acts(
            "message_edit", lambda _, it: it.id == sent.id, sent.edit(content="hello again")
        )
        assert before.id == after.id and edited.edited_at is not None
        step("edit", after.content)

        _, (reaction, user) = await self.acts(
            "reaction_add", lambda it, _: it.message.id == sent.id, sent.add_reaction("✅")
        )
        assert user.id == self.user.id
        fetched = await channel.fetch_message(sent.id)
        assert fetched.reactions[0].count == 1 and fetched.reactions[0].me
        step("react", str(reaction.emoji))

        thread, created = await self.acts("thread_create", lambda _: True, sent.create_thread(name="room"))
        assert thread.id == created.id == sent.id and thread.parent_id == channel.id
        inside = await thread.send("inside")
        assert inside.channel.id == thread.id
        assert (await thread.edit(archived=True)).archived
        step("thread", thread.name)

        extra = await channel.send("gone soon")
        _, deleted = await self.acts("message_delete", lambda it: it.id == extra.id, extra.delete())
        try:
            await channel.fetch_message(extra.id)
            raise AssertionError("a deleted message was found")
        except discord.NotFound as error:
            assert error.code == 10008
        step("delete", deleted.content)

        file = discord.File(io.BytesIO(b"bytes"), filename="a.txt")
        filed = await channel.send(file=file)
        attachment = filed.attachments[0]
        assert attachment.size == 5 and await attachment.read() == b"bytes"
        step("upload", attachment.filename)

    async def webhook(self, channel: discord.TextChannel) -> None:
        hook = await channel.create_webhook(name="voices")
        said, event = await self.acts(
            "message",
            lambda it: it.webhook_id == hook.id,
            hook.send("a plan", username="Planner", wait=True),
        )
        assert said.id == event.id
        assert (await said.edit(content="a better plan")).content == "a better plan"
        step("webhook", event.author.name)

    async def steps(self) -> None:
        guild = self.get_guild(GUILD)
        assert guild is not None and guild.me is not None
        channel = guild.get_channel(CHANNEL)
        assert isinstance(channel, discord.TextChannel)
        step("login", self.user.name, channel.name)
        await self.messages(channel)
        await self.webhook(channel)

        done = asyncio.get_running_loop().create_future()

        @self.tree.command(name="plan", description="Makes a plan", guild=guild)
        async def plan(interaction: discord.Interaction, goal: str) -> None:
            response = await interaction.response.send_message(f"planning {goal}", view=Buttons(done))
            message = response.resource
            assert isinstance(message, discord.InteractionMessage)
            assert message.content == f"planning {goal}"
            assert message.interaction_metadata.user == interaction.user
            assert interaction.permissions.send_messages
            step("run", interaction.command.name, goal, interaction.user.name)

        @self.tree.error
        async def failed(interaction: discord.Interaction, error: Exception) -> None:
            done.set_exception(error)

        registered = await self.tree.sync(guild=guild)
        assert registered[0].options[0].name == "goal"
        assert len(await self.tree.fetch_commands(guild=guild)) == 1
        step("register", registered[0].name)
        heard = asyncio.create_task(self.wait_for("message", check=lambda it: not it.author.bot, timeout=20))
        await asyncio.wait_for(done, 20)
        message = await heard
        assert isinstance(message.author, discord.Member)
        step("hear", message.content)


client = Client()
client.run(os.environ["TEAMS_TOKEN"], log_handler=None)
if client.failure is not None:
    raise client.failure

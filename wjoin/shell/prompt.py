"""The prompt: several lines, history, completion, colours, and a line about what runs below it."""

import contextlib
import os
import sys
import termios
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from wjoin.grammar.parser import unended
from wjoin.grammar.tokens import Kind, scan
from wjoin.shell.commands import NAMES, is_command
from wjoin.shell.completion import Names, candidates
from wjoin.shell.history import StatementHistory
from wjoin.shell.lexer import StatementLexer

PROMPT, MORE = "wjoin> ", "    -> "
_LONGEST = 20_000
"""Signs of a text in which something is completed: each key that is pressed scans it anew."""

_LOCAL_MODES = 3
"""Where the modes of a terminal's line, such as its echo, stand among its attributes."""

_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "more": "ansibrightblack",
        "pygments.keyword": "ansiblue bold",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansiyellow",
        "pygments.comment": "ansibrightblack italic",
        "rprompt": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
        "bottom-toolbar.text": "noreverse",
        "completion-menu.meta.completion": "bg:ansibrightblack ansiwhite",
    }
)


class StatementCompleter(Completer):
    """Completes statements by place, commands, and the files of ``.read`` and ``.udf``."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what can stand at the cursor."""
        text = document.text
        if len(text) > _LONGEST:
            return
        if text.startswith("."):
            yield from _in_command(document, complete_event)
            return
        asked = complete_event.completion_requested
        for each in candidates(text, document.cursor_position, self._names(), asked=asked):
            yield Completion(each.text, -each.back, display_meta=each.what)


def _in_command(document: Document, event: CompleteEvent) -> Iterable[Completion]:
    before = document.text_before_cursor
    name, blank, argument = before.partition(" ")
    if not blank:
        yield from (Completion(each, -len(before)) for each in NAMES if each.startswith(before.lower()))
    elif name in (".read", ".udf"):
        ending = {".read": ".sql", ".udf": ".py"}[name]
        paths = PathCompleter(
            expanduser=True,
            file_filter=lambda path: os.path.isdir(path) or path.endswith(ending),  # noqa: PTH112 (it is text)
        )
        yield from paths.get_completions(Document(argument, len(argument)), event)


def is_complete(text: str) -> bool:
    """Return whether what has been typed can be run: its statements are ended, or it is a command."""
    return is_command(text) or unended(text) == len(text)


def missing(text: str) -> str:
    """Return what an unfinished text of several lines still lacks, empty for any other."""
    if "\n" not in text or is_complete(text):
        return ""
    last = scan(text)[-1]
    if last.kind is Kind.UNCLOSED:
        opened = {"'": "a string", '"': "a string", "`": "a name"}.get(last.text[0], "a comment")
        return f"{opened} is not closed"
    return "; ends the statement"


class Prompt:
    """Reads statements at a terminal.

    ``status`` is shown below the prompt; whoever changes it calls ``redraw``. ``out`` is the terminal.
    ``prompted`` is set when the first prompt is there.
    """

    def __init__(self, out: TextIO, history: StatementHistory, names: Callable[[], Names]) -> None:
        self.status = ""
        self._output = create_output(stdout=out)
        self._left = threading.Event()
        self._session: PromptSession[str] = PromptSession(
            message=[("class:prompt", PROMPT)],
            prompt_continuation=lambda width, number, wrapped: [("class:more", MORE)],
            multiline=True,
            history=history,
            lexer=PygmentsLexer(StatementLexer),
            completer=StatementCompleter(names),
            complete_in_thread=True,
            complete_while_typing=True,
            reserve_space_for_menu=6,
            key_bindings=_keys(),
            style=_STYLE,
            include_default_pygments_style=False,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
            rprompt=_missing,
            bottom_toolbar=self._toolbar,
            enable_open_in_editor=True,
            tempfile_suffix=".sql",
            output=self._output,
        )
        self._app: Application[str] = self._session.app
        self.prompted = threading.Event()
        self._app.after_render += lambda app: self.prompted.set()

    def _toolbar(self) -> StyleAndTextTuples:
        return [("", f" {self.status}" if self.status else "")]

    def read(self) -> str:
        """Return what is typed. Raises KeyboardInterrupt at Ctrl-C, EOFError at Ctrl-D and when left."""
        if self._left.is_set():
            raise EOFError
        with patch_stdout(raw=True):
            return self._session.prompt()

    def ask(self, question: str) -> bool:
        """Return whether the user says yes: with Enter and Ctrl-D, too, but not with Ctrl-C."""
        asked: PromptSession[str] = PromptSession(output=self._output)
        self._app = asked.app
        try:
            with patch_stdout(raw=True):
                said = asked.prompt(question)
        except KeyboardInterrupt:
            return False
        except EOFError:
            return True
        finally:
            self._app = self._session.app
        return said.strip().lower() in ("", "y", "yes")

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """Keep what is typed inside for the next prompt, and do not show it before."""
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        silent = [*before]
        silent[_LOCAL_MODES] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, silent)
        try:
            yield
        finally:
            # A terminal that has been closed has no modes.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(terminal, termios.TCSANOW, before)

    def redraw(self) -> None:
        """Show the status anew, where a prompt is there; from any thread."""
        self._app.invalidate()

    def leave(self) -> None:
        """End the prompt that is there or the next one, as Ctrl-D does; from anywhere."""
        self._left.set()
        if self._app.is_running and self._app.loop is not None:
            self._app.loop.call_soon_threadsafe(self._exit)

    def _exit(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit(exception=EOFError)


def _missing() -> StyleAndTextTuples:
    return [("", missing(get_app().current_buffer.text))]


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add(
        "enter",
        filter=~completion_is_selected & Condition(lambda: get_app().current_buffer.name == "DEFAULT_BUFFER"),
    )
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys

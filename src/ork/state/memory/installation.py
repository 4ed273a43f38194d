"""Settings and identity of the whole installation, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ork.model.ids import RunId
from ork.model.installation import Control, SharedSettings
from ork.model.workflow import Rate
from ork.state.installation import attempts_are_active
from ork.state.records import NO_RATES

if TYPE_CHECKING:
    from ork.state.memory.rows import Shared


class InstallationInMemory:
    """A part of the memory store."""

    def _used(self) -> Shared:
        raise AssertionError("the store defines this")

    def _changing(self) -> Shared:
        raise AssertionError("the store defines this")

    async def read_shared_settings(self) -> SharedSettings | None:
        return self._used().settings

    async def record_shared_settings(self, settings: SharedSettings) -> SharedSettings:
        state = self._used()
        state.settings = state.settings or settings
        return state.settings

    async def replace_shared_settings(self, settings: SharedSettings, *, force: bool = False) -> None:
        runs = self._used().runs.values()
        active = sum(not attempt.status.is_final for row in runs for attempt in row.attempts.values())
        if active and not force:
            raise attempts_are_active(active)
        state = self._changing()
        state.settings = settings
        state.disown(list(state.schedulers))
        state.schedulers.clear()

    async def read_note(self, name: str) -> str | None:
        return self._used().notes.get(name)

    async def swap_note(self, name: str, before: str | None, after: str) -> bool:
        notes = self._used().notes
        if notes.get(name) != before:
            return False
        notes[name] = after
        return True

    async def set_limits(self, limits: Mapping[str, int], rates: Mapping[str, Rate] = NO_RATES) -> None:
        if (self._used().limits, self._used().rates) != (dict(limits), dict(rates)):
            state = self._changing()
            state.limits, state.rates = dict(limits), dict(rates)

    async def set_control(self, control: Control) -> None:
        self._changing().controls[control.target] = control

    async def clear_control(self, target: str) -> bool:
        return self._changing().controls.pop(target, None) is not None

    async def list_controls(self) -> tuple[Control, ...]:
        return tuple(control for _, control in sorted(self._used().controls.items()))

    async def runs_with_commands(self) -> tuple[RunId, ...]:
        return tuple(sorted({command.run for command in self._used().commands.values()}))

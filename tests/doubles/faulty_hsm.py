"""A PKCS#11 library in front of SoftHSM that fails on demand."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class FaultyHsm:
    """A library in front of SoftHSM that fails on demand: see hsm_faults.c. A double of faults, not of an HSM."""

    folder: Path
    behind: Path
    library: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.library = self.folder / "libfaulty.so"
        self.pass_all()
        source = Path(__file__).with_name("hsm_faults.c")
        subprocess.run(
            ["gcc", "-O1", "-fPIC", "-shared", "-pthread", "-o", str(self.library), str(source)]
            + [f'-DREAL="{self.behind}"', f'-DCONTROL="{self._control}"', "-ldl"],
            check=True,
            capture_output=True,
        )

    @property
    def _control(self) -> Path:
        return self.folder / "control"

    @property
    def _log(self) -> Path:
        return self.folder / "control.log"

    def pass_all(self) -> None:
        self.set("pass")

    def set(self, mode: str) -> None:
        """What happens from now on: "answer 0x30 2", "slow 200", "restart", "lapse", "own-nonce", "no-gcm", "pass"."""
        unfinished = self.folder / "control.new"
        unfinished.write_text(mode + "\n")
        unfinished.replace(self._control)

    def calls(self) -> list[str]:
        """The calls since the last `forget`, by name."""
        return self._log.read_text().split() if self._log.exists() else []

    def forget(self) -> None:
        self._log.unlink(missing_ok=True)

    def mode(self) -> str:
        return self._control.read_text().strip()

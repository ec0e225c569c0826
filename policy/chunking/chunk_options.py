"""Options of how pages become chunks, and which plug-ins count tokens and make vectors."""

from ...web.base.dataclass import dataclass
from ...web.base.option_checks import Launch
from ...web.base.options import option
from ...web.base.wording import value_error
from ...web.plugins.plugin_files import PLUGIN_FORM, PLUGIN_NAME
from ...web.plugins.plugin_options import PluginOptions
from .tokenizers import Tokenizer, tokenizer_of

_SMALLEST = 16
_DEFAULT = "words"


@dataclass(frozen=True)
class ChunkOptions(PluginOptions):
    """Options of chunks."""

    GROUP = "chunks"

    chunks: int = option(
        0,
        "Write chunks of pages, with at most this number of tokens, instead of pages: 16 or more. "
        "0: write pages.",
        minimum=0,
    )
    chunk_tokenizer: str = option(
        _DEFAULT,
        "What counts tokens: words, characters, or the name of a plug-in.",
        pattern=PLUGIN_NAME,
        form=PLUGIN_FORM,
        plugins=True,
    )
    tokenizer_file: str = option(
        "",
        "File tokenizer.json of a model, on each worker; it counts tokens instead of "
        "--chunk_tokenizer, and needs nutbeam[tokenizers].",
        takes="path",
    )
    embedding: str = option(
        "",
        "Plug-in that makes a vector of each chunk; the vectors are the column embedding.",
        pattern=f"|{PLUGIN_NAME}",
        form=PLUGIN_FORM,
        plugins=True,
    )

    def __post_init__(self) -> None:
        if 0 < self.chunks < _SMALLEST:
            raise value_error(f"--chunks must be {_SMALLEST} or more", self.chunks)
        if self.tokenizer_file and self.chunk_tokenizer != _DEFAULT:
            raise ValueError("--tokenizer_file and --chunk_tokenizer cannot be used together")
        others = ("chunk_tokenizer", "tokenizer_file", "embedding")
        for name in others if not self.chunks else ():
            if getattr(self, name) not in ("", _DEFAULT):
                raise ValueError(f"--{name} needs --chunks, such as --chunks 512")

    def check_setup(self, launch: Launch) -> None:
        """Reads the file of the tokenizer, if there is one.

        Raises:
            ValueError: It cannot be read, or its library is not installed.
        """
        if self.tokenizer_file:
            self.tokenizer()

    def tokenizer(self) -> Tokenizer:
        """Returns what counts tokens; see ``tokenizer_of``."""
        return tokenizer_of(self.chunk_tokenizer, self.tokenizer_file)

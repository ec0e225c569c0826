"""Scripts that are written without spaces between words, for patterns of ``re``."""

# Ranges for a character class: Thai, Lao, Myanmar, Khmer, Kana, Bopomofo, Han.
SPACELESS_RANGES = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)

"""The page's ES modules as one script, which a page without a server can hold.

A browser imports no module from the file system. So each module becomes a block, after the blocks
of the modules that it imports, and hands on what it exports by an object. The modules use no more
than `import { names } from "./module.js";` and `export` before a declaration, and no cycles.
"""

import re
from pathlib import Path

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|async function|class) (\w+))", re.MULTILINE)


def as_one_script(folder: Path, name: str) -> str:
    """Return a module and all that it imports, files of one folder, as the text of one module."""
    blocks: dict[str, str] = {}

    def add(module: str) -> None:
        if module in blocks:
            return
        text = (folder / f"{module}.js").read_text(encoding="utf-8")
        for _, imported in _IMPORT.findall(text):
            add(imported)
        exported = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", text))
        blocks[module] = f"{{\n{body}modules.{module} = {{ {exported} }};\n}}\n"

    add(name)
    return "const modules = {};\n" + "".join(blocks.values())

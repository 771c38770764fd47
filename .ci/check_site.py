"""Fail if a page of the built site links to a file, image or anchor that is not in the site.

The site builder checks links between Markdown pages; this also covers images, the navigation and
the API reference, and finds pages that nothing leads to.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """The anchors that a page offers and the addresses that it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors, self.references = {""}, set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.anchors |= {value for name, value in attrs if name in ("id", "name") and value}
        self.references |= {value for name, value in attrs if name in ("href", "src") and value}


def main(site: Path) -> int:
    """Print what is broken and return how many complaints there are."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    reached, complaints = {site / "index.html"}, []
    for path, page in pages.items():
        for reference in page.references:
            if urlsplit(reference).scheme or reference.startswith("//"):
                continue  # on another site
            address, anchor = (unquote(part) for part in urldefrag(reference))
            target = (path.parent / address).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            reached |= {target} - {path}
            if not target.is_file() or (target in pages and anchor not in pages[target].anchors):
                complaints.append(f"{path.relative_to(site)}: nothing at {reference}")
    complaints += [
        f"{path.relative_to(site)}: no page leads here" for path in pages.keys() - reached
    ]
    print("\n".join(sorted(complaints)) or f"{len(pages)} pages, every link leads somewhere")
    return len(complaints)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()) > 0)

"""The public sets of sentence similarity: where each is, and what is known of it.

The revisions are those that MTEB pins. The checksums are of the content (see
`tasks.checksum`) that the figures in the documentation were measured on.
"""

from typing import NamedTuple


class Known(NamedTuple):
    """A public set of pairs: its name under ``RECOS_DATA``, and its data set on the hub."""

    file: str
    repository: str
    revision: str
    checksum: str
    licence: str
    citation: str


_SEMEVAL = "SemEval: free for research"
KNOWN = {
    "STS12": Known(
        "sts12", "mteb/sts12-sts", "a0d554a64d88156834ff5ae9920b964011b16384",
        "05b5a626cdb9d177a430dea7c84fcc3068b68a5c72c2aa05848aba7a51d86c0d", _SEMEVAL,
        "Agirre, Cer, Diab, Gonzalez-Agirre (2012). SemEval-2012 Task 6: A Pilot on Semantic "
        "Textual Similarity. *SEM 2012. https://aclanthology.org/S12-1051",
    ),
    "STS13": Known(
        "sts13", "mteb/sts13-sts", "7e90230a92c190f1bf69ae9002b8cea547a64cca",
        "acd5ac2ca64eaf20740d524ad3fea4582158bf84dc5738c24320be90d2aba6c8", _SEMEVAL,
        "Agirre, Cer, Diab, Gonzalez-Agirre, Guo (2013). *SEM 2013 shared task: Semantic Textual "
        "Similarity. *SEM 2013. https://aclanthology.org/S13-1004",
    ),
    "STS14": Known(
        "sts14", "mteb/sts14-sts", "6031580fec1f6af667f0bd2da0a551cf4f0b2375",
        "0fdb20c78d64f20fe5ec0134156378cb597121fc93e99601194f257930d8a562", _SEMEVAL,
        "Agirre et al. (2014). SemEval-2014 Task 10: Multilingual Semantic Textual Similarity. "
        "SemEval 2014. https://aclanthology.org/S14-2010",
    ),
    "STS15": Known(
        "sts15", "mteb/sts15-sts", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3",
        "8e62bb93bccffa3c64b0c2539c2929747c8d79d518af0bd082e9fc4984c434d8", _SEMEVAL,
        "Agirre et al. (2015). SemEval-2015 Task 2: Semantic Textual Similarity, English, Spanish "
        "and Pilot on Interpretability. SemEval 2015. https://aclanthology.org/S15-2045",
    ),
    "STS16": Known(
        "sts16", "mteb/sts16-sts", "4d8694f8f0e0100860b497b999b3dbed754a0513",
        "86189efb76b0a605e90dffd746fbd96cf9cd8986247e9b6591a5e440280e1b74", _SEMEVAL,
        "Agirre et al. (2016). SemEval-2016 Task 1: Semantic Textual Similarity, Monolingual and "
        "Cross-Lingual Evaluation. SemEval 2016. https://aclanthology.org/S16-1081",
    ),
    "STS-B": Known(
        "stsb", "mteb/stsbenchmark-sts", "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
        "791e450b543f3c2599ccb04a7b3070a5f3a3915af19030caf2a0ea7a69c5fdfc",
        "CC BY-SA 4.0",
        "Cer, Diab, Agirre, Lopez-Gazpio, Specia (2017). SemEval-2017 Task 1: Semantic Textual "
        "Similarity, Multilingual and Crosslingual Focused Evaluation. SemEval 2017. "
        "https://aclanthology.org/S17-2001",
    ),
    "SICK-R": Known(
        "sickr", "mteb/sickr-sts", "20a6d6f312dd54037fe07a32d58e5e168867909d",
        "2992994b37a94430676c9a1f706aceddb4fb7ba943f22a2cb7c76ab187e8d9ed",
        "CC BY-NC-SA 3.0",
        "Marelli, Menini, Baroni, Bentivogli, Bernardi, Zamparelli (2014). A SICK cure for the "
        "evaluation of compositional distributional semantic models. LREC 2014. "
        "https://aclanthology.org/L14-1314",
    ),
}  # fmt: skip

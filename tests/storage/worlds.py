"""Small indexes made by the storage package alone, and files of the user next to them."""

import hashlib

from klsa_search.storage.current import current_generation
from klsa_search.storage.documents import DocumentWriter
from klsa_search.storage.generations import commit, describe_files, new_generation, sync_files
from klsa_search.storage.manifest import FORMAT_VERSION, BuildEntry, Counts, Manifest


def manifest_of(generation, documents=0):
    return Manifest(
        format_version=FORMAT_VERSION,
        package_version="0",
        source="test",
        fingerprint="0",
        settings={},
        counts=Counts(documents=documents, terms=0, tokens=0, non_zeros=0, skipped=0),
        spectra={},
        build=BuildEntry(created="", seconds=0, peak_memory=0),
        files=describe_files(generation),
    )


def write(path, content):
    with new_generation(path) as generation:
        (generation / "vocabulary.txt").write_text(content)
        sync_files(generation)
        commit(generation, manifest_of(generation))


def write_documents(path, documents):
    """Write a generation that has nothing but documents; return its folder."""
    with new_generation(path) as generation:
        with DocumentWriter(generation) as writer:
            writer.extend(documents)
        sync_files(generation)
        commit(generation, manifest_of(generation, len(documents)))
    return generation


def content(path):
    return (current_generation(path) / "vocabulary.txt").read_text()


def folders(path):
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir())


def files_below(path):
    """Every file and link below a folder, with what it holds."""
    return {
        entry.relative_to(path).as_posix(): str(entry.readlink())
        if entry.is_symlink()
        else entry.read_text()
        for entry in path.rglob("*")
        if entry.is_symlink() or entry.is_file()
    }


def without_marks(path):
    """Remove the markers of an index and its generations."""
    for marker in path.rglob("KLSA-INDEX"):
        marker.unlink()


def point_current(path, name, digest="0" * 64):
    """Make CURRENT name a generation, whether there is one or not."""
    (path / "CURRENT").write_text(f"{name}\nsha256 {digest}\n")


def replace_manifest(generation, content):
    """Write other bytes as the manifest of the generation in use, and their sum in CURRENT."""
    (generation / "manifest.json").write_bytes(content)
    point_current(generation.parent, generation.name, hashlib.sha256(content).hexdigest())

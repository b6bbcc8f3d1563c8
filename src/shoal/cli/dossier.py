"""`shoal dossier`: the papers of releases."""

from shoal.cli import options as o
from shoal.cli.output import show
from shoal.progress import working


def dossier(
    manifests: o.Manifests,
    ledger: o.Ledger,
    output: o.Papers,
    facts: o.Facts = None,
    force: o.Force = False,
) -> None:
    """Write the papers: an entry for the registry, a page to sign.

    The registry is that of deployments of differential privacy; the page is for a data protection
    officer.

    If the file of facts is missing, it is written with the questions; fill it in and repeat the
    command with --force, which replaces entry and page alone.

    Example: shoal dossier 2026-05.json --ledger city.ledger --facts facts.yaml --output dossier
    """
    import shoal

    with working("verifying, writing"):
        done = shoal.dossier(manifests, output, ledger=ledger, facts=facts, overwrite=force)
    show("\n".join([f"wrote {each}" for each in done.files.values()] + [str(done)]))

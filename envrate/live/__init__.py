"""Live agents: wall clock, a socket any agent can speak, and a page for a person."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach(
    __name__,
    submod_attrs={
        "_client": ["Client"],
        "_episode": ["Action", "Episode", "World"],
        "_runner": ["run"],
        "_server": ["Server", "serve"],
    },
)

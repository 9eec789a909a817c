"""The names of `ag2.network.client.skill_render`."""

from agent_adapter.network import (
    ParsedSkill as ParsedSkill,
)
from agent_adapter.network import (
    parse_skill_frontmatter as parse_skill_frontmatter,
)
from agent_adapter.network import (
    render_fallback_skill as render_fallback_skill,
)

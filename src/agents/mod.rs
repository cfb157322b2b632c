//! Driving real coding agents: one driver, pure codecs, the result contract, prompts and sessions.

//! Worktrees, ownership by content, commits, checks at a commit, and the merge to the branch.

//! What an agent tried at the team's sockets and may not.

use crate::domain::word::words;

words! {
    /// The kinds of it.
    pub enum Refusal {
        /// To command what people command.
        Command = "command",
        /// To use a tool of another role.
        Tool = "tool",
        /// To use the tools of another run.
        OtherRun = "other_run",
        /// To get in by the control socket, which is the operator's.
        Control = "control",
        /// To reach a place of the network that its role may not.
        Network = "network",
        /// To reach a model server, or to pass the team's proxy, with nothing that opens it.
        #[serde(alias = "door")]
        Proxy = "proxy",
    }
}

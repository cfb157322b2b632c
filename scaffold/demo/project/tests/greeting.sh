check "greets the world" "Hello, world!" sh greet.sh
check "greets a name" "Hello, Mina!" sh greet.sh Mina
check "refuses what it does not know" "greet: unknown option --sing" sh greet.sh --sing

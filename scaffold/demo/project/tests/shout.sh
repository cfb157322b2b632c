check "shouts" "HELLO, MINA!" sh greet.sh --shout Mina

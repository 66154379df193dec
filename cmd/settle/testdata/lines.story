# One job a line.

$ settle enqueue a --lines --id 00000000-0000-8000-8000-000000000001 <<< "1\n"
err: settle: --lines makes many jobs: --id and --key would make them one
err: try: settle enqueue --help
exit: 2
$ settle jobs
err: settle: settle.db: there is no database here; to recover: name the right file with --db or SETTLE_DB; settle enqueue and settle run make a new one
exit: 1
$ settle enqueue a --lines --key k <<< "1\n"
err: settle: --lines makes many jobs: --id and --key would make them one
err: try: settle enqueue --help
exit: 2
$ settle enqueue a '1' --lines
err: settle: --lines reads from --file or standard input ("-"), not from the command line
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --lines --file nosuchfile
err: settle: --file: open nosuchfile: no such file or directory
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --lines --file .
err: settle: --file: . is a folder
err: try: settle enqueue --help
exit: 2
$ settle enqueue a --lines <<< "1\n{\n"
err: settle: standard input: line 2: is not JSON: it ends in the middle, after byte 1; --raw passes on any bytes; no line has been stored
err: try: settle enqueue --help
exit: 2
$ settle jobs
err: settle: no job matches

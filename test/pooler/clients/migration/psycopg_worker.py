"""What psycopg 3 does while tables and types change: every statement is prepared at its first use. See ../migration.ts."""

import json
import sys
from datetime import datetime, timedelta, timezone

import psycopg


def attempt(label, connection, act):
    try:
        print(f"{label}: {act()!r}")
    except psycopg.Error as error:
        print(f"{label}: error {error.sqlstate}")
        # This makes psycopg forget its statements, and tell the server so.
        connection.execute("ROLLBACK")


def batch(number, connections):
    for turn in range(2):
        for index, connection in enumerate(connections):
            key = number * 100 + turn * 10 + index
            n = key if number < 1 else 5_000_000_000 + key
            zone = None if number < 2 else timezone(timedelta(hours=5))
            at = datetime(2026, 1, 1, 12, tzinfo=zone)
            mood = "sad" if number < 4 else "mad"
            label = f"{number}.{turn}.{index}"

            def rows(text, *values, binary=False):
                return connection.execute(text, values, binary=binary).fetchall()

            insert = "insert into moved (id, n, at, note) values (%s, %s, %s, %s) returning *"
            attempt(f"{label} insert", connection, lambda: rows(insert, key, n, at, f"note {key}"))
            attempt(f"{label} text", connection, lambda: rows("insert into moods (m) values (%s) returning m", mood))
            attempt(f"{label} one", connection, lambda: rows("select n, at from moved where id = %s", key, binary=True))
            attempt(f"{label} count", connection, lambda: rows("select count(*) from moved where n = %s", str(n)))
            attempt(f"{label} all", connection, lambda: rows("select * from moved order by id desc limit 2"))


def main():
    for place in json.loads(sys.argv[1]):
        print("begin", flush=True)
        sys.stdin.readline()
        connections = []
        for _ in range(3):
            connection = psycopg.connect(
                host=place["host"],
                port=place["port"],
                user=place["user"],
                password=place["password"],
                dbname=place["database"],
                autocommit=True,
                prepare_threshold=0,
            )
            connections.append(connection)
        for number in range(6):
            if number > 0:
                print(f"migrate {number}", flush=True)
                sys.stdin.readline()
            batch(number, connections)
        for connection in connections:
            connection.close()
    print("end", flush=True)


main()

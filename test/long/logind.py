#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""logind.py: the part of systemd's logind that the kubelet uses for a graceful shutdown of its node, on the bus DBUS_SYSTEM_BUS_ADDRESS.

A line "shutdown" or "cancel" on standard input sends the signal PrepareForShutdown. It prints "inhibited" when the kubelet has taken a
delay lock, and "released" when the kubelet has closed it. Source: org.freedesktop.login1(5).
"""
import os
import selectors
import sys

from jeepney import DBusAddress, HeaderFields, MessageType, new_error, new_method_return, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import Proxy, open_dbus_connection

PATH, INTERFACE = "/org/freedesktop/login1", "org.freedesktop.login1.Manager"
DELAY_MAX_US = 120 * 1000 * 1000


def answer(message):
    """The reply to a call, and for a lock the end of a pipe that shows when the lock is closed."""
    member, interface = message.header.fields[HeaderFields.member], message.header.fields.get(HeaderFields.interface)
    if interface == "org.freedesktop.DBus.Properties" and member == "Get" and message.body == (INTERFACE, "InhibitDelayMaxUSec"):
        return new_method_return(message, "v", (("t", DELAY_MAX_US),)), None, None
    if interface == INTERFACE and member == "Inhibit" and message.body[0] == "shutdown" and message.body[3] == "delay":
        ours, lock = os.pipe()
        return new_method_return(message, "h", (lock,)), ours, lock
    return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "s", (f"no {interface}.{member} here",)), None, None


def main():
    connection = open_dbus_connection("SYSTEM", enable_fds=True)
    assert Proxy(message_bus, connection).RequestName("org.freedesktop.login1") == (1,)
    print("ready", flush=True)
    waiting = selectors.DefaultSelector()
    waiting.register(sys.stdin, selectors.EVENT_READ)
    waiting.register(connection.sock, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is sys.stdin:
                line = sys.stdin.readline()
                if not line:
                    return
                connection.send(new_signal(DBusAddress(PATH, interface=INTERFACE), "PrepareForShutdown", "b", (line == "shutdown\n",)))
            elif key.fileobj is connection.sock:
                message = connection.receive(timeout=5)
                if message.header.message_type is not MessageType.method_call:
                    continue
                reply, ours, lock = answer(message)
                connection.send(reply)
                if ours is not None:
                    os.close(lock)
                    waiting.register(ours, selectors.EVENT_READ)
                    print("inhibited", flush=True)
            else:  # the lock is closed
                waiting.unregister(key.fileobj)
                os.close(key.fileobj)
                print("released", flush=True)


main()

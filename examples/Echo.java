// SPDX-License-Identifier: GPL-2.0-only

import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/**
 * An echo server.  Java makes TCP sockets only, but takes a listening one as its standard
 * input, as from inetd; see serve.py.  (A client needs "rsctl run java".)
 */
class Echo {
	public static void main(String[] args) throws Exception {
		var listener = (ServerSocketChannel) System.inheritedChannel();
		var buffer = ByteBuffer.allocateDirect(65536);

		for (;;) {
			try (SocketChannel conn = listener.accept()) {
				while (conn.read(buffer.clear()) >= 0) {
					buffer.flip();
					while (buffer.hasRemaining())
						conn.write(buffer);
				}
			}
		}
	}
}
